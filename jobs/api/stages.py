"""The stages of a job for rows that are judged one by one: from the user's columns to a verdict, whoever runs them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ragassay.jobs.api.rows import log_rows, with_verdicts
from ragassay.jobs.api.rule import Judging
from ragassay.jobs.config.job import Job
from ragassay.jobs.scoring.frequencies import count_context_frequencies
from ragassay.jobs.scoring.stages import make_stages
from ragassay.jobs.verdicts.languages import set_languages
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.language import read_row_languages
from ragassay.pipeline.text.redact import make_redaction
from ragassay.schemas.columns import LOGS, SCORED_FIELDS


@dataclass
class FunctionStage(Stage):
    """A light stage that calls a function; its other attributes are those of `Stage`.

    Attributes:
        call: The function.
    """

    name: str
    call: Callable[[pa.Table], pa.Table]
    columns_in: tuple[str, ...]
    columns_out: pa.Schema
    fault_prefix: str | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        """Call it."""
        return self.call(table)


def row_stages(job: Job, by: Judging) -> list[Stage]:
    """From question, context and response to a verdict, a row at a time: no row's depends on another's.

    Args:
        job: The job.
        by: How its rows are judged.
    """
    judge = partial(with_verdicts, settings=by.settings)
    verdict = FunctionStage("verdict", judge, ("members", "status", "sentences", "error"), pa.schema(SCORED_FIELDS))
    return [*scoring_stages(set_languages(job, by.settings.languages), by.frequencies), verdict]


def scoring_stages(job: Job, frequencies: DocumentFrequencies | None) -> list[Stage]:
    """Those of them before the verdict.

    Args:
        job: The job.
        frequencies: Document frequencies; None has each row judged by those of its own context.
    """
    to_logs = partial(log_rows, columns=job.input.columns, redaction=make_redaction(job.input.redact))
    scoring = make_stages(job, None if frequencies is None else lambda: frequencies)
    if frequencies is None:
        scoring = [_alone(stage) if isinstance(stage, DetectStage) else stage for stage in scoring]
    return [FunctionStage("read", to_logs, (), LOGS), *scoring]


def _alone(detect: DetectStage) -> FunctionStage:
    """The detectors, each row by the word frequencies of its own context: as a run over that row alone has them."""
    call = partial(_detect_alone, detect)
    return FunctionStage(detect.name, call, detect.columns_in, detect.columns_out, detect.fault_prefix)


def _detect_alone(detect: DetectStage, table: pa.Table) -> pa.Table:
    contexts = zip(
        read_row_languages(table, detect.language, detect.language_column), table["context"].to_pylist(), strict=True
    )
    own = [partial(count_context_frequencies, [context], code) for code, context in contexts]
    found = [replace(detect, frequencies=counted)(table.slice(i, 1)) for i, counted in enumerate(own)]
    return pa.concat_tables(found) if found else table
