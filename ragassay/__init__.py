"""RAGAssay checks every sentence of logged RAG answers against its context. This module is the Python API.

`ragassay.run` is the command `ragassay run`, `check` checks one answer, `judge` judges a table in memory, and `stages` returns
stages for a Ray Data pipeline (docs/reference/python.md). The folders of this package are links to those at the top of the
repository: `schemas` (what data looks like), `pipeline` (what happens to a batch), `jobs` (where and when it runs), `infra`.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ragassay.jobs.api.checked_answer import CheckedAnswer
    from ragassay.jobs.api.show import Preview
    from ragassay.schemas.manifest import Run

__version__ = version("ragassay")

__all__ = ["__version__", "check", "judge", "run", "show", "stages"]

Frame = TypeVar("Frame")


def run(logs: str, output: str, job: dict[str, Any] | str | None = None) -> "Run":
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

    loaded_job = select_job(job)
    with restore_sigterm():
        record = run_job(loaded_job, logs, output, new_console())
    refuse_too_many_errors(loaded_job.runtime, record, output)
    return record


def check(
    *,
    question: str | None = None,
    context: str | Sequence[str | Mapping[str, Any] | None] | Mapping[str, Any] | None,
    response: str | None,
    job: dict[str, Any] | str | None = None,
    history: str | None = None,
    calibration: str | None = None,
    fast: bool = False,
) -> "CheckedAnswer":
    """Check one answer in this process, as the command `ragassay check` does. The engine stays loaded for the next call.

    Args:
        question: The user's question.
        context: The passages: texts or objects with a text; or one string.
        response: The response to check.
        job: Contents or path of a job file; None uses the job of `history` if all its members are detectors, otherwise the
            default members.
        history: Output folder whose latest moments, threshold and word frequencies apply.
        calibration: File of `calibrate`, whose moments and threshold take precedence. Without `history`, `calibration` and a
            job that sets them, the bundled statistics apply; they were measured on public labeled data sets.
        fast: Use the job's detectors only (by default three), and load no model.

    Returns:
        The answer with its sentences; a notebook shows them in color. Without a score, `status` and `error` state the reason.

    Raises:
        RagassayError: The answer, the job, the output or the calibration can't be used; the message states the fix.
    """
    from ragassay.jobs.api.check import check_answers
    from ragassay.jobs.api.progress import show_progress_only
    from ragassay.jobs.api.select_job import select_job

    selected_job = select_job(job, history, fast=fast)
    columns = selected_job.input.columns
    passages = context if context is None or isinstance(context, str | Mapping) else list(context)
    answer = {columns.question: question, columns.context: passages, columns.response: response}
    with show_progress_only(selected_job) as progress:
        return check_answers(selected_job, [answer], history, calibration, progress.report_step)[0]


def judge(table: Frame, job: dict[str, Any] | str | None = None) -> Frame:
    """Judge a table in this process, with the verdicts and scores of `ragassay run`, without files and without Ray.

    Args:
        table: polars.DataFrame, pandas.DataFrame or pyarrow.Table with question, context, response and other columns.
        job: Contents or path of a job file; None uses the default members. The judge of a cascade is not asked.

    Returns:
        A table of the same type: the same rows in the same order, with the columns of `scored/` and your other columns. The
        `status` and `error` of a row without a score state the reason.

    Raises:
        RagassayError: The table or the job can't be used; the message states the fix.
    """
    from ragassay.jobs.api.frames import to_arrow
    from ragassay.jobs.api.judge import judge_table
    from ragassay.jobs.api.progress import show_progress_only
    from ragassay.jobs.api.select_job import select_job

    rows, convert_back = to_arrow(table)
    selected_job = select_job(job)
    with show_progress_only(selected_job, rows.num_rows) as progress:
        judged: Frame = convert_back(judge_table(selected_job, rows, progress))
    return judged


def show(rows: Any, limit: int = 20) -> "Preview":
    """Show rows that `judge` returned: in color in a notebook, as plain text with `print`.

    Args:
        rows: polars.DataFrame, pandas.DataFrame or pyarrow.Table with the columns of `scored/`.
        limit: Maximum number of rows to show.
    """
    from ragassay.jobs.api.frames import to_arrow
    from ragassay.jobs.api.show import preview_rows

    return preview_rows(to_arrow(rows)[0], limit)


def stages(
    job: dict[str, Any] | str | None = None, history: str | None = None, calibration: str | None = None, *, fast: bool = False
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
    from ragassay.jobs.config.job import resolve_dtypes
    from ragassay.jobs.runtime.dataflow import map_batches_options

    selected_job = resolve_dtypes(select_job(job, history, fast=fast))
    settings = resolve_answer_settings(selected_job, history, calibration)
    return [map_batches_options(stage) for stage in make_row_stages(selected_job, settings)]
