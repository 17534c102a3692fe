"""An export of traces, in the place of logs: told by its records, which only the tool that wrote them has like this."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from ragassay.jobs.address import address_of
from ragassay.jobs.input import Logs
from ragassay.jobs.traces.export import Record, export_files, records
from ragassay.jobs.traces.presets import ODD, PRESETS
from ragassay.jobs.traces.spans import Kind, Span
from ragassay.pipeline.errors import InputError

FILES = 16
"""Files that are looked at, spread over all of them."""

RECORDS = 100
"""Records of each."""

TELLING = (Kind.GENERATION, Kind.RETRIEVER, Kind.RERANKER)
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
        kinds: How many of their spans are of which kind.
        told: Retrievals of these that tell texts of passages.
        asked: Whether a root, or a trace as a whole, was seen that asks.
    """

    uri: str
    preset: str
    files: int
    mib: float
    records: int
    kinds: Counter[Kind]
    told: int
    asked: bool

    @property
    def doubts(self) -> list[str]:
        """What would leave rows without a verdict."""
        retrievals = self.kinds[Kind.RETRIEVER] + self.kinds[Kind.RERANKER]
        if not retrievals:
            return ["none of them is a retrieval: a trace without one has the status no_context, and no verdict"]
        if not self.told:
            return ["no retrieval tells texts, but ids at most: such a trace has the status no_context, and no verdict"]
        return []


def traces_in(uri: str) -> Traces | None:
    """Look whether INPUT is an export of traces.

    Args:
        uri: A file, a folder, a glob, on a disk or an object store.

    Returns:
        What it is; None where it is none, which other readers then tell more of.
    """
    try:
        export = export_files(uri)
    except InputError:
        return None
    seen = list(_records(export))
    found = {preset: [span for record in seen for span in _spans(preset, record)] for preset in PRESETS}
    kinds = {preset: Counter(span.kind for span in spans) for preset, spans in found.items()}
    preset = max(PRESETS, key=lambda name: sum(kinds[name][kind] for kind in TELLING))
    if not any(kinds[preset][kind] for kind in TELLING):
        return None
    retrievals = [span for span in found[preset] if span.kind in (Kind.RETRIEVER, Kind.RERANKER)]
    return Traces(
        uri=address_of(uri),
        preset=preset,
        files=len(export.files),
        mib=sum(file.size for file in export.files) / (1 << 20),
        records=len(seen),
        kinds=kinds[preset],
        told=sum(any(document.text for document in span.documents or ()) for span in retrievals),
        asked=any(span.question for span in found[preset] if span.kind is Kind.TRACE or span.root or span.parent_id is None),
    )


def _records(export: Logs) -> Iterator[Record]:
    """Some records of some files; what can't be read is passed over, the run tells of it."""
    step = max(1, -(-len(export.files) // FILES))
    for file in export.files[::step]:
        try:
            yield from islice(records(export.fs, file, lambda _: None), RECORDS)
        except (OSError, pa.ArrowException):
            continue


def _spans(preset: str, record: Record) -> list[Span]:
    try:
        return list(PRESETS[preset](record))
    except ODD:
        return []
