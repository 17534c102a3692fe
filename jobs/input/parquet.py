"""Parquet: its footer tells all but the rows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.files import Format, LogFile

TAIL_BYTES = 1 << 16  # read at once: nearly every footer is shorter
_END_BYTES = 8  # the last of a Parquet file: length of its footer, magic
_MAGIC = b"PAR1"


def footer_bytes(source: pa.NativeFile) -> bytes:
    """The end of a Parquet file, from its footer on; of anything else, some of its end."""
    size = source.size()
    tail: bytes = source.read_at(min(size, TAIL_BYTES), max(0, size - TAIL_BYTES))
    if not tail.endswith(_MAGIC):
        return tail
    length = int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little") + _END_BYTES
    if len(tail) < length <= size:
        tail = source.read_at(length - len(tail), size - length) + tail
    return tail[-length:]


def _look(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    with fs.open_input_file(file.fs_path) as source:
        footer = footer_bytes(source)
    with pq.ParquetFile(pa.BufferReader(footer)) as parquet:
        meta, schema = parquet.metadata, parquet.schema_arrow
    digest = blake2b(footer, digest_size=16).hexdigest()
    return replace(file, rows=meta.num_rows, schema=schema, row_groups=meta.num_row_groups, digest=digest)


class _Reader:
    def __init__(self, parquet: pq.ParquetFile) -> None:
        self._parquet = parquet
        self.sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self._parquet.iter_batches(rows, row_groups=[group], columns=columns))


@contextmanager
def open_parquet(fs: pafs.FileSystem, path: str) -> Iterator[_Reader]:
    """Open a Parquet file for reading."""
    with pq.ParquetFile(path, filesystem=fs, page_checksum_verification=True, pre_buffer=False) as parquet:
        yield _Reader(parquet)


PARQUET = Format("Parquet", ".parquet", _look, open_parquet)
