"""The stages of a job for rows that are judged one by one: from the user's columns to a verdict, whoever runs them."""

from collections.abc import Sequence

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.front.rows import log_rows, with_verdicts
from ragassay.jobs.front.rule import Judging
from ragassay.jobs.plan import Stage
from ragassay.jobs.score.frequencies import context_frequencies
from ragassay.jobs.score.stages import detect_counted, stages
from ragassay.jobs.verdict.languages import with_languages
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.language import row_languages
from ragassay.pipeline.redact import redaction_of
from ragassay.pipeline.stages.detect import detect_batch


def row_stages(job: Job, by: Judging) -> list[Stage]:
    """From question, context and response to a verdict, a row at a time: no row's depends on another's.

    Args:
        job: The job.
        by: How its rows are judged.
    """
    scoring = with_languages(job, by.settings.languages)
    return [*scoring_stages(scoring, by.frequencies), Stage("verdict", with_verdicts, {"settings": by.settings})]


def scoring_stages(job: Job, frequencies: Frequencies | None) -> list[Stage]:
    """Those of them before the verdict.

    Args:
        job: The job.
        frequencies: Document frequencies; None has each row judged by those of its own context.
    """
    read = Stage("read", log_rows, {"columns": job.columns, "redaction": redaction_of(job.redact)})
    known = frequencies
    if known is None:
        return [read, *map(_alone, stages(job))]
    return [read, *stages(job, lambda: known)]


def detect_alone(
    table: pa.Table, detectors: Sequence[Detector], language: str, threads: int, language_column: str | None = None
) -> pa.Table:
    """The detectors, each row by the word frequencies of its own context: what a run over that row alone would say.

    Args:
        table: Rows, as `detect_batch` takes them.
        detectors: Which.
        language: ISO 639-1 code.
        threads: CPU threads for embeddings.
        language_column: Column with each row's language, in the place of `language`; None where there is none.
    """
    rows = [table.slice(i, 1) for i in range(table.num_rows)]
    contexts = zip(row_languages(table, language, language_column), table["context"].to_pylist(), strict=True)
    own = [context_frequencies([context], code) for code, context in contexts]
    found = [
        detect_batch(row, detectors, language, known, threads, language_column) for row, known in zip(rows, own, strict=True)
    ]
    return pa.concat_tables(found) if found else table


def _alone(stage: Stage) -> Stage:
    if stage.call is not detect_counted:
        return stage
    arguments = {name: value for name, value in stage.arguments.items() if name != "frequencies"}
    return Stage(stage.name, detect_alone, arguments)
