"""Read the footers of Parquet files, many at once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from hashlib import blake2b

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.files import LogFile
from ragassay.jobs.storage import READERS

TAIL_BYTES = 1 << 16  # read at once: nearly every footer is shorter
_END_BYTES = 8  # the last of a Parquet file: length of its footer, magic
_MAGIC = b"PAR1"


def read_footers(fs: pafs.FileSystem, files: Sequence[LogFile]) -> list[LogFile]:
    """Files with what their footers say, or with why they can't be read."""
    schemas: dict[pa.Schema, pa.Schema] = {}  # most files share one, and need to hold it but once
    with ThreadPoolExecutor(READERS) as readers:
        found = readers.map(partial(_read, fs), files)
        return [f if f.schema is None else replace(f, schema=schemas.setdefault(f.schema, f.schema)) for f in found]


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


def _read(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    try:
        with fs.open_input_file(file.fs_path) as source:
            footer = footer_bytes(source)
        with pq.ParquetFile(pa.BufferReader(footer)) as parquet:
            meta, schema = parquet.metadata, parquet.schema_arrow
        list(schema.names)  # a name that is no UTF-8 fails here
        digest = blake2b(footer, digest_size=16).hexdigest()
        return replace(file, rows=meta.num_rows, schema=schema, row_groups=meta.num_row_groups, digest=digest)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        return replace(file, error=(str(error).splitlines() or [type(error).__name__])[0])
