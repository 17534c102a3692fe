"""An export of traces, in the place of logs: told by its records, which only the tool that wrote them has like this."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from ragassay.jobs.address import address_of
from ragassay.jobs.init.names import SYNONYMS, Role, parts_of
from ragassay.jobs.init.sample import spread
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.traces.export import Damage, Record, export_files, records
from ragassay.jobs.traces.presets import ODD, PRESETS
from ragassay.jobs.traces.spans import RETRIEVALS, Kind, Span
from ragassay.pipeline.errors import InputError

FILES = 16
"""Files that are looked at, spread over all of them."""

RECORDS = 100
"""Records of each, at most."""

SPANS = 400
"""Spans of each: a record of OpenTelemetry may hold hundreds."""

STRAY = 0.1
"""Share of the records above which rows of logs among them are what is meant."""

DAMAGES = 10
"""Lines that can't be read, after which a file is no export."""

TELLING = (Kind.GENERATION, *RETRIEVALS)
"""Kinds of spans that no other tool's records, and no logs, are taken for."""


@dataclass(frozen=True)
class Traces:
    """What is known of an export of traces.

    Attributes:
        uri: Where it is.
        preset: The tool that wrote it.
        files: Its files.
        mib: Their size.
        records: Records that were looked at.
        others: Those of them that hold no span.
        rows: Those with a context and a response of their own, as rows of logs have them.
        kinds: How many of their spans are of which kind.
        told: Retrievals of these that tell texts of passages.
        asked: Whether a root, or a trace as a whole, was seen that asks.
    """

    uri: str
    preset: str
    files: int
    mib: float
    records: int
    others: int
    rows: int
    kinds: Counter[Kind]
    told: int
    asked: bool

    @property
    def retrieves(self) -> bool:
        """Whether a retrieval was seen, which no row of a log is like."""
        return any(self.kinds[kind] for kind in RETRIEVALS)

    @property
    def doubts(self) -> list[str]:
        """What would leave rows without a verdict."""
        found = []
        if not self.retrieves:
            found.append("none of them is a retrieval: a trace without one has the status no_context, and no verdict")
        elif not self.told:
            found.append("no retrieval tells texts, but ids at most: such a trace has the status no_context, and no verdict")
        if self.rows:
            found.append(f"{self.rows:,} of {self.records:,} records are rows of logs, and would be passed over")
        elif self.others > self.records / 2:
            found.append(f"{self.others:,} of {self.records:,} records are no spans, and would be passed over")
        return found


@dataclass
class _Tally:
    """What one preset makes of the records."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    others: int = 0
    told: int = 0
    asked: bool = False
    placed: int = 0  # times and parents that were read

    def add(self, spans: list[Span]) -> int:
        """Count the spans of a record, and say how many they are."""
        self.others += not spans
        for span in spans:
            self.kinds[span.kind] += 1
            self.told += span.kind in RETRIEVALS and any(document.text for document in span.documents or ())
            self.asked |= bool(span.question) and (span.kind is Kind.TRACE or span.root or span.parent_id is None)
            self.placed += (span.start is not None) + (span.end is not None) + (span.parent_id is not None)
        return len(spans)

    @property
    def fit(self) -> tuple[int, int]:
        """How well the preset fits; two may know a record's ids, and one of them its times."""
        return sum(self.kinds[kind] for kind in TELLING), self.placed


def traces_in(uri: str) -> Traces | None:
    """Look whether INPUT is an export of traces.

    Args:
        uri: A file, a folder, a glob, on a disk or an object store.

    Returns:
        What it is; None where it is none, or mostly logs. Other readers tell more then.
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
            rows += _of_a_log(name for name, value in record.items() if value and isinstance(value, str | bytes | list))
            spans += max(tally.add(_spans(preset, record)) for preset, tally in tallies.items())
            if spans >= SPANS:
                break
    preset = max(PRESETS, key=lambda name: tallies[name].fit)
    found = tallies[preset]
    if not any(found.kinds[kind] for kind in TELLING) or rows > STRAY * seen:
        return None
    return Traces(
        uri=address_of(uri),
        preset=preset,
        files=len(export.files),
        mib=export.size / (1 << 20),
        records=seen,
        others=found.others,
        rows=rows,
        kinds=found.kinds,
        told=found.told,
        asked=found.asked,
    )


class _NoExportError(Exception):
    """A file has so many lines that can't be read."""


def _records(export: Logs, file: LogFile) -> Iterator[Record]:
    """Records of a file; what can't be read is passed over, the run tells of it."""
    damages = 0

    def count(_: Damage) -> None:
        nonlocal damages
        damages += 1
        if damages == DAMAGES:
            raise _NoExportError

    try:
        yield from records(export.fs, file, count, buffer=1 << 20)
    except (OSError, pa.ArrowException, _NoExportError):
        return


def _of_a_log(names: Iterable[str]) -> bool:
    """Whether what has texts by these names is a row of logs: a context and a response of its own, by their usual names."""
    found = {"_".join(parts_of(name)) for name in names}
    return all(not found.isdisjoint(SYNONYMS[role]) for role in (Role.CONTEXT, Role.RESPONSE))


def _spans(preset: str, record: Record) -> list[Span]:
    try:
        return list(PRESETS[preset](record))
    except ODD:
        return []
