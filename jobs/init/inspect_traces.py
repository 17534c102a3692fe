"""Recognize the tool that wrote a trace export by the form of its records."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from ragassay.jobs.init.inspect_logs import Findings, describe_size
from ragassay.jobs.init.names import SYNONYMS, ColumnRole, split_name
from ragassay.jobs.init.sample_columns import pick_evenly
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.integrations.traces.parse_spans import RECORD_ERRORS, parse_spans
from ragassay.jobs.integrations.traces.presets import PRESETS
from ragassay.jobs.integrations.traces.read_export import ExportRecord, UnreadablePart, find_export_files, read_records
from ragassay.jobs.integrations.traces.span import RETRIEVAL_KINDS, Span, SpanKind
from ragassay.pipeline.errors import InputError

SAMPLED_FILES = 16  # evenly spread
MAX_RECORDS, MAX_SPANS = 100, 400  # per file; a record of OpenTelemetry may contain hundreds of spans
MAX_STRAY_SHARE = 0.1  # share of log rows among the records above which the input is logs
MAX_UNREADABLE = 10  # unreadable parts after which a file is not an export
DISTINCTIVE_KINDS = (SpanKind.GENERATION, *RETRIEVAL_KINDS)
"""Kinds of spans that records of other tools, and logs, do not match."""


@dataclass
class _Tally:
    """Counts of the spans that one preset reads from the records."""

    kinds: Counter[SpanKind] = field(default_factory=Counter)
    other_records: int = 0  # records without spans
    text_retrievals: int = 0  # retrievals with passage texts
    has_question: bool = False  # whether a root or a trace has a question
    placement_fields: int = 0  # times and parents found

    def add(self, spans: list[Span]) -> int:
        """Count the spans of a record and return their number."""
        self.other_records += not spans
        for span in spans:
            self.kinds[span.kind] += 1
            self.text_retrievals += span.kind in RETRIEVAL_KINDS and any(document.text for document in span.documents or ())
            self.has_question |= bool(span.question) and (span.kind is SpanKind.TRACE or span.root or span.parent_id is None)
            self.placement_fields += (span.start is not None) + (span.end is not None) + (span.parent_id is not None)
        return len(spans)

    @property
    def fit(self) -> tuple[int, int]:
        """How well the preset fits: distinctive spans first, then times and parents. Two presets may read the same ids."""
        return sum(self.kinds[kind] for kind in DISTINCTIVE_KINDS), self.placement_fields


def inspect_traces(uri: str) -> Findings | None:
    """Return the findings about an export of traces.

    Args:
        uri: File, folder or glob, on a disk or in an object store.

    Returns:
        None if the input is no export of traces, or mostly logs; other readers then have better error messages.
    """
    try:
        export = find_export_files(uri)
    except InputError:
        return None
    tallies, record_count, row_count = {preset: _Tally() for preset in PRESETS}, 0, 0
    for file in pick_evenly(export.files, SAMPLED_FILES):
        span_count = 0
        for record in islice(_read_records(export, file), MAX_RECORDS):
            record_count += 1
            row_count += _is_log_row(record)
            span_count += max(tally.add(_parse_spans(preset, record)) for preset, tally in tallies.items())
            if span_count >= MAX_SPANS:
                break
    preset, tally = max(tallies.items(), key=lambda item: item[1].fit)
    if not tally.fit[0] or row_count > MAX_STRAY_SHARE * record_count:
        return None
    has_retrievals = any(tally.kinds[kind] for kind in RETRIEVAL_KINDS)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.kinds.most_common())
    other_text = f"; records without spans: {tally.other_records:,}" if tally.other_records else ""
    doubts = []
    if not has_retrievals:
        doubts.append("none of them is a retrieval; a trace without one gets the status no_context and no verdict")
    elif not tally.text_retrievals:
        doubts.append("no retrieval has texts, at most ids; such a trace gets the status no_context and no verdict")
    if row_count:
        doubts.append(f"{row_count:,} of {record_count:,} records are rows of logs and would be skipped")
    elif tally.other_records > record_count / 2:
        doubts.append(f"{tally.other_records:,} of {record_count:,} records are not spans and would be skipped")
    return Findings(
        files=export,
        size=f"traces of {preset} in {describe_size(export)}",
        sample=(
            f"Of {record_count:,} sampled records, spans by kind: {kinds}; retrievals with texts: {tally.text_retrievals:,}"
            f"{other_text}."
        ),
        has_questions=tally.has_question,
        is_certain=has_retrievals,
        doubts=doubts,
        preset=preset,
        slices=["model", "trace_name"],
        partition_key="dt",
    )


class _NotAnExportError(Exception):
    """A file has too many unreadable lines for an export."""


def _read_records(export: Logs, file: LogFile) -> Iterator[ExportRecord]:
    """Read the records of a file; unreadable parts are skipped, the run reports them."""
    unreadable: list[UnreadablePart] = []

    def count_unreadable(damage: UnreadablePart) -> None:
        unreadable.append(damage)
        if len(unreadable) == MAX_UNREADABLE:
            raise _NotAnExportError

    try:
        yield from read_records(export.fs, file, count_unreadable, buffer_size=1 << 20)
    except (OSError, pa.ArrowException, _NotAnExportError):
        return


def _is_log_row(record: ExportRecord) -> bool:
    """Return whether a record is a row of logs: it has a context and a response by their common names."""
    texts = [name for name, value in record.items() if value and isinstance(value, str | bytes | list)]
    names = {"_".join(split_name(name)) for name in texts}
    return all(not names.isdisjoint(SYNONYMS[role]) for role in (ColumnRole.CONTEXT, ColumnRole.RESPONSE))


def _parse_spans(preset: str, record: ExportRecord) -> list[Span]:
    try:
        return list(parse_spans(PRESETS[preset], record))
    except RECORD_ERRORS:
        return []
