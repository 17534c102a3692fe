"""RAGAssay: says of every sentence of every logged RAG answer whether its context supports it. The library's front door.

`ragassay.run` is the command `ragassay run`, `check` judges one answer, `judge` a table in memory, and `stages` are for a Ray
Data pipeline of one's own (docs/reference/python.md). The folders beside this file are links to those at the top of the
repository: `schemas` (what data looks like), `pipeline` (what happens to a batch), `jobs` (where and when it runs), `infra`.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ragassay.jobs.api.checked import Checked
    from ragassay.jobs.api.show import Shown
    from ragassay.schemas.manifest import Run

__version__ = version("ragassay")

__all__ = ["__version__", "check", "judge", "run", "show", "stages"]

Frame = TypeVar("Frame")


def run(logs: str, output: str, job: dict[str, Any] | str | None = None) -> "Run":
    """Score what is new of the logs, fit, and give every response a verdict, as the command `ragassay run` does.

    Args:
        logs: Parquet file, folder, glob or object-store URI: question, context, response.
        output: Output folder or URI; a broken run that lies there goes on.
        job: The job as its file has it, or the path of one; by default the bundled verifier and the detectors.

    Returns:
        The run's record, as the manifest has it; the verdicts lie in `output`/scored.

    Raises:
        RagassayError: It names what is wrong and the way out; nothing is lost, the same call goes on where it stopped. Too
            many rows on which this program failed (`runtime.max_error_share`) raise it too, when everything is written.
    """
    from ragassay.jobs.cli.console import new_console
    from ragassay.jobs.config.job import load_job, make_job
    from ragassay.jobs.run import run_job
    from ragassay.jobs.runtime.endings import restore_sigterm
    from ragassay.jobs.verdicts.error_share import refuse_too_many_errors

    made = make_job(job) if isinstance(job, dict) else load_job(job)
    with restore_sigterm():
        done = run_job(made, logs, output, new_console())
    refuse_too_many_errors(made.runtime, done, output)
    return done


def check(
    *,
    question: str | None = None,
    context: str | Sequence[str | None] | None,
    response: str | None,
    job: dict[str, Any] | str | None = None,
    like: str | None = None,
    calibration: str | None = None,
    fast: bool = False,
) -> "Checked":
    """Judge one answer in this process, as the command `ragassay check` does. The engine stays loaded for the next.

    Args:
        question: The user's question.
        context: The passages, or one text.
        response: The answer.
        job: The job as its file has it, or the path of one; None takes that of `like`, if it has detectors alone, else the
            default.
        like: An output folder whose last moments, threshold and word frequencies count.
        calibration: A file of `calibrate`; its moments and threshold come first. Without any of these, statistics that are
            bundled with the default members count: they were measured on public labelled sets.
        fast: By the three default detectors alone; no model is loaded.

    Returns:
        The answer with its sentences; a notebook shows them in colour. One that can't be judged has a status that says why.

    Raises:
        RagassayError: It names what is wrong and the way out.
    """
    from ragassay.jobs.api.check import check_answers
    from ragassay.jobs.api.job import job_of
    from ragassay.jobs.api.progress import shown

    made = job_of(job, like, fast=fast)
    names = made.input.columns
    passages = context if context is None or isinstance(context, str) else list(context)
    answer = {names.question: question, names.context: passages, names.response: response}
    with shown() as progress:
        return check_answers(made, [answer], like, calibration, progress.tell)[0]


def judge(table: Frame, job: dict[str, Any] | str | None = None) -> Frame:
    """Judge a table in this process: the verdicts and scores that `ragassay run` gives for it, without files and without Ray.

    Args:
        table: polars.DataFrame, pandas.DataFrame or pyarrow.Table: question, context, response, and whatever else.
        job: The job as its file has it, or the path of one; by default the bundled verifier and the detectors. A cascade's
            judge is not asked.

    Returns:
        A table of the same kind: the same rows in the same order, the columns of `scored/`, and your others. A row that
        can't be scored has a `status` and `error` that say why.

    Raises:
        RagassayError: It names what is wrong and the way out.
    """
    from ragassay.jobs.api.frames import as_arrow
    from ragassay.jobs.api.job import job_of
    from ragassay.jobs.api.judge import judge_table
    from ragassay.jobs.api.progress import shown

    rows, back = as_arrow(table)
    with shown(rows.num_rows) as progress:
        found: Frame = back(judge_table(job_of(job), rows, progress))
    return found


def show(rows: Any, most: int = 20) -> "Shown":
    """Rows of `scored/`, as `judge` gives them: a notebook shows their sentences in colour, and `print` prints them.

    Args:
        rows: polars.DataFrame, pandas.DataFrame or pyarrow.Table with the columns of `scored/`.
        most: How many are shown, from the first on.
    """
    from ragassay.jobs.api.frames import as_arrow
    from ragassay.jobs.api.show import shown_rows

    return shown_rows(as_arrow(rows)[0], most)


def stages(
    job: dict[str, Any] | str | None = None, like: str | None = None, calibration: str | None = None, *, fast: bool = False
) -> list[dict[str, Any]]:
    """The stages of a job for a Ray Data pipeline of one's own, in order: `dataset = dataset.map_batches(**stage)` for each.

    Each row is judged as `check` judges it. In come rows with question, context and response under the names of the job's
    `columns`; out come the columns of `scored/` and your others, in which `row_key` means nothing.

    Args:
        job: See `check`.
        like: See `check`.
        calibration: See `check`.
        fast: See `check`.

    Raises:
        RagassayError: It names what is wrong and the way out.
    """
    from ragassay.jobs.api.job import job_of
    from ragassay.jobs.api.rule import judging
    from ragassay.jobs.api.stages import row_stages
    from ragassay.jobs.config.job import with_dtypes
    from ragassay.jobs.runtime.dataflow import map_batches_options

    made = with_dtypes(job_of(job, like, fast=fast))
    return [map_batches_options(stage) for stage in row_stages(made, judging(made, like, calibration))]
