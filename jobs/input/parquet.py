"""Read Parquet files. Everything but the rows comes from the footer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.files import FileFormat, LogFile

TAIL_BYTES = 1 << 16  # read in one request: nearly every footer is shorter
_END_BYTES = 8  # end of a Parquet file: length of the footer, magic
_MAGIC = b"PAR1"


def read_footer_bytes(source: pa.NativeFile) -> bytes:
    """Read the end of a Parquet file from the start of its footer; of any other file, only some bytes at the end."""
    size = source.size()
    tail: bytes = source.read_at(min(size, TAIL_BYTES), max(0, size - TAIL_BYTES))
    if not tail.endswith(_MAGIC):
        return tail
    length = int.from_bytes(tail[-_END_BYTES : -len(_MAGIC)], "little") + _END_BYTES
    if len(tail) < length <= size:
        tail = source.read_at(length - len(tail), size - length) + tail
    return tail[-length:]


def _inspect(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    with fs.open_input_file(file.fs_path) as source:
        footer = read_footer_bytes(source)
    with pq.ParquetFile(pa.BufferReader(footer)) as parquet:
        meta, schema = parquet.metadata, parquet.schema_arrow
    digest = blake2b(footer, digest_size=16).hexdigest()
    return replace(file, rows=meta.num_rows, schema=schema, row_groups=meta.num_row_groups, digest=digest)


class _ParquetReader:
    def __init__(self, parquet: pq.ParquetFile) -> None:
        self._parquet = parquet
        self.row_group_sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]

    def read_batches(self, row_group: int, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self._parquet.iter_batches(max_rows, row_groups=[row_group], columns=columns))


@contextmanager
def open_parquet(fs: pafs.FileSystem, path: str) -> Iterator[_ParquetReader]:
    """Open a Parquet file."""
    with pq.ParquetFile(path, filesystem=fs, page_checksum_verification=True, pre_buffer=False) as parquet:
        yield _ParquetReader(parquet)


PARQUET = FileFormat("Parquet", ".parquet", _inspect, open_parquet)
