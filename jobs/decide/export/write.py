"""Write a file whole or not at all: JSON lines, or Parquet."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs.decide.export.rows import TEXT_ROWS, Row
from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import OutputError

_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}  # a reader may take them for line ends


@contextmanager
def _whole(target: Folder, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """A stream into a file beside the target, which becomes the target when all is written."""
    part = f"{target.root}.part"
    try:
        target.fs.create_dir(target.root.rpartition("/")[0], recursive=True)
        with target.fs.open_output_stream(part, compression=compression, buffer_size=2**20) as stream:
            yield stream
        target.fs.move(part, target.root)
    except BaseException as error:
        with suppress(OSError):
            target.fs.delete_file(part)
        if isinstance(error, OSError):
            raise OutputError(f"{target.uri} can't be written: {error}") from error
        raise


def write_jsonl(target: Folder, rows: Iterable[Row]) -> int:
    """Write an object a line; gives their number."""
    written = 0
    with _whole(target, "gzip" if target.root.endswith(".gz") else None) as stream:
        for row in rows:
            text = json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)
            stream.write(f"{text}\n".encode())
            written += 1
    return written


def write_parquet(target: Folder, rows: Iterator[Row], schema: pa.Schema) -> int:
    """Write rows, those of a batch at a time; gives their number."""
    written = 0
    with _whole(target) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while batch := list(islice(rows, TEXT_ROWS)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema))
            written += len(batch)
    return written
