"""Spans on this machine's disk, in buckets by their traces: so that an export of any size is joined in a bounded memory."""

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from ragassay.jobs.traces.spans import Span, from_table, to_table
from ragassay.jobs.traces.spill import Spill

BUFFERED = 8192
"""Spans that wait in memory before they are written."""

BUCKET_BYTES = 16 << 20
"""Bytes of export files for each bucket: a bucket's spans stand in memory together, and Parquet packs them tenfold."""

MOST = 512


class Buckets:
    """Spans by their traces: all of one trace are in one bucket."""

    def __init__(self, folder: Path, size: int) -> None:
        """Open none yet.

        Args:
            folder: Where they are put.
            size: Bytes of the export.
        """
        self._spill = Spill(folder)
        self._count = min(MOST, 1 + size // BUCKET_BYTES)
        self._ready: list[tuple[int, Span]] = []

    def add(self, span: Span) -> None:
        """Put a span into its bucket."""
        self._ready.append((crc32(span.trace_id.encode("utf-8", "surrogatepass")) % self._count, span))
        if len(self._ready) >= BUFFERED:
            self._write()

    def each(self) -> Iterator[dict[str, list[Span]]]:
        """The spans of every bucket by their traces, in the order in which they came; nothing can be added from now on."""
        self._write()
        for name in sorted(self._spill.names(), key=int):
            traces: dict[str, list[Span]] = {}
            for batch in self._spill.batches(name):
                for span in from_table(pa.Table.from_batches([batch])):
                    traces.setdefault(span.trace_id, []).append(span)
            yield traces

    def _write(self) -> None:
        groups: dict[int, list[Span]] = {}
        for number, span in self._ready:
            groups.setdefault(number, []).append(span)
        self._ready = []
        for number, spans in groups.items():
            self._spill.append(str(number), to_table(spans))
