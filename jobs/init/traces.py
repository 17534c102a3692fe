"""An export of traces, in the place of logs: known by its records, which only the tool that wrote them has like this."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from ragassay.jobs.init.columns import spread
from ragassay.jobs.init.findings import Findings, size_of
from ragassay.jobs.init.names import SYNONYMS, Role, words_of_name
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.integrations.traces.export import Damage, Record, export_files, records
from ragassay.jobs.integrations.traces.presets import ODD, PRESETS
from ragassay.jobs.integrations.traces.spans import RETRIEVALS, Kind, Span
from ragassay.pipeline.errors import InputError

FILES = 16  # that are looked at, spread over all of them
RECORDS, SPANS = 100, 400  # of each, at most; a record of OpenTelemetry may hold hundreds of spans
STRAY = 0.1  # share of the records above which rows of logs among them are what is meant
DAMAGES = 10  # lines that can't be read, after which a file is no export
TELLING = (Kind.GENERATION, *RETRIEVALS)
"""Kinds of spans that no other tool's records, and no logs, are taken for."""


@dataclass
class _Tally:
    """What one preset makes of the records."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    others: int = 0  # records without a span
    texts: int = 0  # retrievals with texts of passages
    asked: bool = False  # whether a root, or a trace as a whole, asks
    placed: int = 0  # times and parents that were read

    def add(self, spans: list[Span]) -> int:
        """Count the spans of a record.

        Returns:
            How many they are.
        """
        self.others += not spans
        for span in spans:
            self.kinds[span.kind] += 1
            self.texts += span.kind in RETRIEVALS and any(document.text for document in span.documents or ())
            self.asked |= bool(span.question) and (span.kind is Kind.TRACE or span.root or span.parent_id is None)
            self.placed += (span.start is not None) + (span.end is not None) + (span.parent_id is not None)
        return len(spans)

    @property
    def fit(self) -> tuple[int, int]:
        """How well the preset fits; two may know a record's ids, and one of them its times."""
        return sum(self.kinds[kind] for kind in TELLING), self.placed


def look_at_traces(uri: str) -> Findings | None:
    """Look whether an input is an export of traces.

    Args:
        uri: A file, a folder, a glob, on a disk or an object store.

    Returns:
        What it is; None where it is none, or mostly logs. Other readers have better messages then.
    """
    try:
        export = export_files(uri)
    except InputError:
        return None
    tallies, seen, rows = {preset: _Tally() for preset in PRESETS}, 0, 0
    for file in spread(export.files, FILES):
        spans = 0
        for record in islice(_records(export, file), RECORDS):
            seen += 1
            rows += _is_row(record)
            spans += max(tally.add(_spans(preset, record)) for preset, tally in tallies.items())
            if spans >= SPANS:
                break
    preset, tally = max(tallies.items(), key=lambda item: item[1].fit)
    if not tally.fit[0] or rows > STRAY * seen:
        return None
    retrieves = any(tally.kinds[kind] for kind in RETRIEVALS)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.kinds.most_common())
    others = f"; records without a span: {tally.others:,}" if tally.others else ""
    doubts = []
    if not retrieves:
        doubts.append("none of them is a retrieval: a trace without one has the status no_context, and no verdict")
    elif not tally.texts:
        doubts.append("no retrieval tells texts, but ids at most: such a trace has the status no_context, and no verdict")
    if rows:
        doubts.append(f"{rows:,} of {seen:,} records are rows of logs, and would be passed over")
    elif tally.others > seen / 2:
        doubts.append(f"{tally.others:,} of {seen:,} records are no spans, and would be passed over")
    return Findings(
        files=export,
        size=f"traces of {preset} in {size_of(export)}",
        sample=f"Of {seen:,} records looked at, spans by kind: {kinds}; retrievals with texts: {tally.texts:,}{others}.",
        is_asked=tally.asked,
        is_certain=retrieves,
        doubts=doubts,
        preset=preset,
        slices=["model", "trace_name"],
        key="dt",
    )


class _NoExportError(Exception):
    """A file has so many lines that can't be read."""


def _records(export: Logs, file: LogFile) -> Iterator[Record]:
    """Records of a file; what can't be read is passed over, the run tells of it."""
    damages: list[Damage] = []

    def note(damage: Damage) -> None:
        damages.append(damage)
        if len(damages) == DAMAGES:
            raise _NoExportError

    try:
        yield from records(export.fs, file, note, buffer=1 << 20)
    except (OSError, pa.ArrowException, _NoExportError):
        return


def _is_row(record: Record) -> bool:
    """Whether a record is a row of logs: it has a context and a response of its own, by their usual names."""
    texts = [name for name, value in record.items() if value and isinstance(value, str | bytes | list)]
    names = {"_".join(words_of_name(name)) for name in texts}
    return all(not names.isdisjoint(SYNONYMS[role]) for role in (Role.CONTEXT, Role.RESPONSE))


def _spans(preset: str, record: Record) -> list[Span]:
    try:
        return list(PRESETS[preset](record))
    except ODD:
        return []
