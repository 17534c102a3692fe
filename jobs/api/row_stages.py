"""Make the stages that judge rows one by one, from the columns of the input to a verdict."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from ragassay.jobs.api.resolve_settings import AnswerSettings
from ragassay.jobs.api.table_rows import read_table_rows
from ragassay.jobs.config.job import Job
from ragassay.jobs.scoring.frequencies import count_context_frequencies
from ragassay.jobs.scoring.stages import make_stages
from ragassay.jobs.verdicts.languages import set_languages
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.finalize import VerdictSettings, finalize_rows
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.language_codes import read_row_languages
from ragassay.pipeline.text.redact import make_redaction
from ragassay.schemas.columns import LOGS, SCORED_FIELDS, passthrough_schema, scored_schema


@dataclass
class FunctionStage(Stage):
    """A light stage that calls a function.

    Attributes:
        function: The function. See `Stage` for the other attributes.
    """

    name: str
    function: Callable[[pa.Table], pa.Table]
    columns_in: tuple[str, ...]
    columns_out: pa.Schema
    fault_prefix: str | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        """Call the function."""
        return self.function(table)


def make_row_stages(job: Job, settings: AnswerSettings) -> list[Stage]:
    """Make the stages from question, context and response to a verdict. No row's result depends on other rows.

    Args:
        job: The job.
        settings: Settings that the rows are judged with.
    """
    verdict_settings = settings.verdict_settings
    judge = partial(finalize_table, settings=verdict_settings)
    verdict = FunctionStage("verdict", judge, ("members", "status", "sentences", "error"), pa.schema(SCORED_FIELDS))
    return [*make_scoring_stages(set_languages(job, verdict_settings.languages), settings.frequencies), verdict]


def make_scoring_stages(job: Job, frequencies: DocumentFrequencies | None) -> list[Stage]:
    """Make the stages before the verdict.

    Args:
        job: The job.
        frequencies: Document frequencies for the detectors; None uses those of each row's own context.
    """
    read_rows = partial(read_table_rows, columns=job.input.columns, redaction=make_redaction(job.input.redact))
    stages = make_stages(job, None if frequencies is None else lambda: frequencies)
    if frequencies is None:
        stages = [_make_row_detect_stage(stage) if isinstance(stage, DetectStage) else stage for stage in stages]
    return [FunctionStage("read", read_rows, (), LOGS), *stages]


def finalize_table(table: pa.Table, settings: VerdictSettings) -> pa.Table:
    """Convert the stages' output to rows of `scored/`.

    Args:
        table: Rows with all columns of `raw/`, in any order.
        settings: Settings of the verdicts.
    """
    schema = scored_schema(passthrough_schema(table.schema))
    batches = [finalize_rows(batch, schema, settings) for batch in table.combine_chunks().to_batches()]
    return pa.Table.from_batches(batches, schema)


def _make_row_detect_stage(detect: DetectStage) -> FunctionStage:
    """Make a detector stage that uses the word frequencies of each row's own context, as a run over this row alone does."""
    function = partial(_detect_rows, detect)
    return FunctionStage(detect.name, function, detect.columns_in, detect.columns_out, detect.fault_prefix)


def _detect_rows(detect: DetectStage, table: pa.Table) -> pa.Table:
    languages = read_row_languages(table, detect.language, detect.language_column)
    contexts = table["context"].to_pylist()
    rows = [
        replace(detect, frequencies=partial(count_context_frequencies, [context], language))(table.slice(i, 1))
        for i, (language, context) in enumerate(zip(languages, contexts, strict=True))
    ]
    return pa.concat_tables(rows) if rows else table
