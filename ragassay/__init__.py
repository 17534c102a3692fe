"""RAGAssay checks every sentence of logged RAG answers against its context. This module is the Python API.

`check` checks one answer, `judge` judges rows in memory, `stages` returns stages for a Ray Data pipeline, `run` is the command
`ragassay run`, and `open` reads its output (docs/reference/python.md). The folders of this package are links to those at the
top of the repository: `schemas` (what data looks like), `pipeline` (what happens to a batch), `jobs` (where and when it runs),
`infra`.
"""

from importlib.metadata import version
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ragassay.jobs.display.verdict import Verdict
    from ragassay.jobs.display.verdicts import Verdicts
    from ragassay.jobs.output.scored_dataset import ScoredDataset
    from ragassay.schemas.manifest import Run

__version__ = version("ragassay")

__all__ = ["__version__", "check", "judge", "open", "run", "show", "stages"]

Rows = TypeVar("Rows")
Uri = str | PathLike[str]
"""A path, or the URI of an object store."""


def run(logs: Uri, output: Uri, job: dict[str, Any] | Uri | None = None) -> "Run":
    """Score new logs and give every response a verdict, as the command `ragassay run` does.

    Args:
        logs: Parquet file, folder, glob or object-store URI with question, context and response.
        output: Output folder or URI; an interrupted run in it is resumed.
        job: Contents or path of a job file; None uses the default members.

    Returns:
        The record of the run, as in the manifest. The verdicts are in `output`/scored.

    Raises:
        RagassayError: The run failed; the message states the cause and the fix, and the same call resumes the run. Also raised
            after everything is written, if too many rows have the status `error` (`runtime.max_error_share`).
    """
    from ragassay.jobs.api.select_job import select_job
    from ragassay.jobs.cli.console import new_console
    from ragassay.jobs.run import run_job
    from ragassay.jobs.runtime.endings import restore_sigterm
    from ragassay.jobs.verdicts.error_share import refuse_too_many_errors

    loaded_job = select_job(_to_text(job))
    with restore_sigterm():
        record = run_job(loaded_job, fspath(logs), fspath(output), new_console())
    refuse_too_many_errors(loaded_job.runtime, record, fspath(output))
    return record


def check(
    question: str | None,
    context: Any,
    response: str | None,
    *,
    job: dict[str, Any] | Uri | None = None,
    history: Uri | None = None,
    calibration: Uri | None = None,
    fast: bool = False,
) -> "Verdict":
    """Check one answer in this process, as the command `ragassay check` does. The engine stays loaded for the next call.

    Args:
        question: The user's question.
        context: The passages: a list of strings, of dicts with a text (`text`, `page_content`, `content` …) or of documents
            of LangChain, LlamaIndex or Haystack; one of these; or JSON.
        response: The response to check.
        job: Contents or path of a job file; None uses the job of `history` if all its members are detectors, otherwise the
            default members.
        history: Output folder whose latest moments, threshold and word frequencies apply.
        calibration: File of `calibrate`, whose moments and threshold take precedence. Without `history`, `calibration` and a
            job that sets them, the bundled statistics apply; they were measured on public labeled data sets.
        fast: Use the job's detectors only (by default three), and load no model.

    Returns:
        The verdict with the sentences; a notebook shows them in color. Without a score, `status` and `error` state the reason.

    Raises:
        RagassayError: The answer, the job, the output or the calibration can't be used; the message states the fix.
    """
    from ragassay.jobs.api.check import check_answers
    from ragassay.jobs.api.progress import show_progress_only
    from ragassay.jobs.api.select_job import select_job

    output, calibration_file = _to_text(history), _to_text(calibration)
    selected_job = select_job(_to_text(job), output, fast=fast)
    columns = selected_job.input.columns
    answer = {columns.question: question, columns.context: context, columns.response: response}
    with show_progress_only(selected_job) as progress:
        return check_answers(selected_job, [answer], output, calibration_file, progress.report_step)[0]


def judge(rows: Rows, job: dict[str, Any] | Uri | None = None, *, fast: bool = False) -> Rows:
    """Judge rows in this process, with the verdicts and scores of `ragassay run`, without files and without Ray.

    Args:
        rows: Question, context, response and other columns: pandas.DataFrame, polars.DataFrame, pyarrow.Table, list of dicts,
            datasets.Dataset, or ray.data.Dataset. A context has every shape that `check` takes, also mixed in a column.
        job: Contents or path of a job file; None uses the default members. The judge of a cascade is not asked.
        fast: See `check`.

    Returns:
        The same type: the same rows in the same order, with the columns of `scored/` and your other columns. The `status` and
        `error` of a row without a score state the reason. A Ray dataset gets the `stages` of the job; it stays lazy, and each
        of its rows is judged alone.

    Raises:
        RagassayError: The rows or the job can't be used; the message states the fix.
    """
    from ragassay.jobs.api.frames import is_ray_dataset, read_user_rows
    from ragassay.jobs.api.judge import judge_table
    from ragassay.jobs.api.progress import show_progress_only
    from ragassay.jobs.api.select_job import select_job
    from ragassay.jobs.api.user_values import get_converters

    if is_ray_dataset(rows):
        dataset: Any = rows
        for stage in stages(job, fast=fast):
            dataset = dataset.map_batches(**stage)
        return dataset  # type: ignore[no-any-return]
    selected_job = select_job(_to_text(job), fast=fast)
    user_table = read_user_rows(rows, get_converters(selected_job.input.columns))
    with show_progress_only(selected_job, user_table.table.num_rows) as progress:
        judged: Rows = user_table.convert_back(judge_table(selected_job, user_table.table, progress, user_table.name))
    return judged


def open(output: Uri) -> "ScoredDataset":
    """Open the verdicts of an output folder. Nothing is loaded until it is asked for, and a run may write meanwhile.

    Args:
        output: Output folder or URI of `ragassay run`.

    Returns:
        The dataset, as of now: `summary()` counts each partition, `flagged()` returns the lowest verdicts, and `to_polars()`
        returns a lazy frame over all rows. A notebook shows it.

    Raises:
        RagassayError: There is no output, or it can't be read.
    """
    from ragassay.jobs.output.manifest import open_output
    from ragassay.jobs.output.scored_dataset import open_scored
    from ragassay.jobs.output.snapshot import take_snapshot

    return open_scored(*take_snapshot(open_output(fspath(output))))


def show(rows: Any, limit: int = 20) -> "Verdicts":
    """Show rows that `judge` returned: in color in a notebook, as plain text with `print`.

    Args:
        rows: Rows with the columns of `scored/`, as `judge` returns them.
        limit: Maximum number of rows to show.
    """
    from ragassay.jobs.api.frames import read_user_rows
    from ragassay.jobs.api.show import preview_rows

    return preview_rows(read_user_rows(rows).table, limit)


def stages(
    job: dict[str, Any] | Uri | None = None, history: Uri | None = None, calibration: Uri | None = None, *, fast: bool = False
) -> list[dict[str, Any]]:
    """Return the stages of a job for a Ray Data pipeline; apply each with `dataset = dataset.map_batches(**stage)`, in order.

    Each row is judged as in `check`. The input has question, context and response under the names of the job's `columns`. The
    output has the columns of `scored/` and your other columns; its `row_key` has no meaning.

    Args:
        job: See `check`.
        history: See `check`.
        calibration: See `check`.
        fast: See `check`.

    Raises:
        RagassayError: The job, the output or the calibration can't be used; the message states the fix.
    """
    from ragassay.jobs.api.resolve_settings import resolve_answer_settings
    from ragassay.jobs.api.row_stages import make_row_stages
    from ragassay.jobs.api.select_job import select_job
    from ragassay.jobs.config.job import resolve_engines
    from ragassay.jobs.runtime.dataflow import map_batches_options

    output, calibration_file = _to_text(history), _to_text(calibration)
    selected_job = resolve_engines(select_job(_to_text(job), output, fast=fast))
    settings = resolve_answer_settings(selected_job, output, calibration_file)
    return [map_batches_options(stage) for stage in make_row_stages(selected_job, settings)]


def _to_text(value: Any) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value
