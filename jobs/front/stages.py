"""The stages of a job for rows that are judged one by one: from the user's columns to a verdict, whoever runs them."""

from collections.abc import Sequence

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.front.rows import log_rows, with_verdicts
from ragassay.jobs.front.rule import Judging
from ragassay.jobs.plan import Stage
from ragassay.jobs.score.frequencies import context_frequencies
from ragassay.jobs.score.stages import detect_counted, stages
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.stages.detect import detect_batch


def row_stages(job: Job, by: Judging) -> list[Stage]:
    """From question, context and response to a verdict, a row at a time: no row's depends on another's.

    Args:
        job: The job.
        by: How its rows are judged.
    """
    return [*scoring_stages(job, by.frequencies), Stage("verdict", with_verdicts, {"settings": by.settings})]


def scoring_stages(job: Job, frequencies: Frequencies | None) -> list[Stage]:
    """Those of them before the verdict.

    Args:
        job: The job.
        frequencies: Document frequencies; None has each row judged by those of its own context.
    """
    read = Stage("read", log_rows, {"columns": job.columns})
    known = frequencies
    if known is None:
        return [read, *map(_alone, stages(job))]
    return [read, *stages(job, lambda: known)]


def detect_alone(table: pa.Table, detectors: Sequence[Detector], language: str, threads: int) -> pa.Table:
    """The detectors, each row by the word frequencies of its own context: what a run over that row alone would say.

    Args:
        table: Rows, as `detect_batch` takes them.
        detectors: Which.
        language: ISO 639-1 code.
        threads: CPU threads for embeddings.
    """
    rows = [table.slice(i, 1) for i in range(table.num_rows)]
    contexts = table["context"].to_pylist()
    own = [context_frequencies([context], language) for context in contexts]
    found = [detect_batch(row, detectors, language, known, threads) for row, known in zip(rows, own, strict=True)]
    return pa.concat_tables(found) if found else table


def _alone(stage: Stage) -> Stage:
    if stage.call is not detect_counted:
        return stage
    arguments = {name: value for name, value in stage.arguments.items() if name != "frequencies"}
    return Stage(stage.name, detect_alone, arguments)
