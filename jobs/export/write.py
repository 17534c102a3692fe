"""Write a file whole or not at all: JSON, JSON Lines, or Parquet."""

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice

import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs import errors
from ragassay.jobs.export.rows import Row
from ragassay.jobs.storage.folder import Folder, open_atomic
from ragassay.pipeline.errors import OutputError

ROW_GROUP_ROWS = 1024
"""Rows per row group of Parquet."""

_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}  # some readers take them for line ends


@contextmanager
def _open_whole(target: Folder, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """Open a file with `writing`; errors name the file."""
    try:
        with open_atomic(target.fs, target.root, compression) as stream:
            yield stream
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=target.uri, reason=error) from error


def _open_text(target: Folder) -> AbstractContextManager[pa.NativeFile]:
    """Open a text file, compressed if its name ends in `.gz`."""
    return _open_whole(target, "gzip" if target.root.endswith(".gz") else None)


def _to_json(row: Row) -> str:
    """Return a row as a JSON object on one line."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)


def write_jsonl(target: Folder, rows: Iterable[Row]) -> int:
    """Write one object per line; return their number."""
    written = 0
    with _open_text(target) as stream:
        for row in rows:
            stream.write(f"{_to_json(row)}\n".encode())
            written += 1
    return written


def write_json(target: Folder, rows: Iterable[Row]) -> int:
    """Write one JSON array, one object per line; return their number."""
    written = 0
    with _open_text(target) as stream:
        for row in rows:
            stream.write(f"{',' if written else '['}\n{_to_json(row)}".encode())
            written += 1
        stream.write(b"\n]\n" if written else b"[]\n")
    return written


def write_parquet(target: Folder, rows: Iterator[Row], schema: pa.Schema) -> int:
    """Write rows in batches; return their number."""
    written = 0
    with _open_whole(target) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while batch := list(islice(rows, ROW_GROUP_ROWS)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema))
            written += len(batch)
    return written
