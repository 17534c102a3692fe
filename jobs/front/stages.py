"""The stages of a job for rows that are judged one by one: from the user's columns to a verdict, whoever runs them."""

from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.front.rows import log_rows, with_verdicts
from ragassay.jobs.front.rule import Judging
from ragassay.jobs.score.frequencies import context_frequencies
from ragassay.jobs.score.stages import stages
from ragassay.jobs.sections import Columns
from ragassay.jobs.verdict.languages import with_languages
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.language import row_languages
from ragassay.pipeline.redact import Redaction, redaction_of
from ragassay.pipeline.stages.detect import Detect, detect_batch
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import LOGS, SCORED_FIELDS


def row_stages(job: Job, by: Judging) -> list[Stage]:
    """From question, context and response to a verdict, a row at a time: no row's depends on another's.

    Args:
        job: The job.
        by: How its rows are judged.
    """
    scoring = with_languages(job, by.settings.languages)
    return [*scoring_stages(scoring, by.frequencies), Verdict(by.settings)]


def scoring_stages(job: Job, frequencies: Frequencies | None) -> list[Stage]:
    """Those of them before the verdict.

    Args:
        job: The job.
        frequencies: Document frequencies; None has each row judged by those of its own context.
    """
    read = ReadRows(job.columns, redaction_of(job.redact))
    if frequencies is None:
        alone = (DetectAlone(stage) if isinstance(stage, Detect) else stage for stage in stages(job))
        return [read, *alone]
    return [read, *stages(job, lambda: frequencies)]


@dataclass
class ReadRows(Stage):
    """Makes a user's rows rows of the schema `logs`, see `log_rows`.

    Attributes:
        columns: The names of the user's columns.
        redaction: What their texts go through; None leaves them.
    """

    columns: Columns
    redaction: Redaction | None

    name = "read"
    columns_in = ()
    columns_out = LOGS

    def __call__(self, table: pa.Table) -> pa.Table:
        """Read."""
        return log_rows(table, self.columns, self.redaction)


@dataclass
class Verdict(Stage):
    """Makes rows of `scored/`, see `with_verdicts`; it contains the faults of rows itself.

    Attributes:
        settings: How scores become verdicts.
    """

    settings: VerdictSettings

    name = "verdict"
    columns_in = ("members", "status", "sentences", "error")
    columns_out = pa.schema(SCORED_FIELDS)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Judge."""
        return with_verdicts(table, self.settings)


@dataclass
class DetectAlone(Stage):
    """The detectors, each row by the word frequencies of its own context: what a run over that row alone would say.

    Attributes:
        detect: The stage of a run.
    """

    detect: Detect

    name = "detect"
    columns_out = Detect.columns_out
    unit = Detect.unit
    fault_prefix = Detect.fault_prefix

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.columns_in = self.detect.columns_in

    def __call__(self, table: pa.Table) -> pa.Table:
        """Detect."""
        of = self.detect
        rows = [table.slice(i, 1) for i in range(table.num_rows)]
        contexts = zip(row_languages(table, of.language, of.language_column), table["context"].to_pylist(), strict=True)
        own = [context_frequencies([context], code) for code, context in contexts]
        found = [
            detect_batch(row, of.detectors, of.language, known, of.threads, of.language_column)
            for row, known in zip(rows, own, strict=True)
        ]
        return pa.concat_tables(found) if found else table
