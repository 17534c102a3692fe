"""Write a file whole or not at all: JSON, JSON lines, or Parquet."""

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice

import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs import errors
from ragassay.jobs.export.rows import Row
from ragassay.jobs.storage.folder import Folder, writing
from ragassay.pipeline.errors import OutputError

GROUP_ROWS = 1024
"""Rows of a row group of Parquet."""

_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}  # a reader may take them for line ends


@contextmanager
def _whole(target: Folder, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """`writing`, with an error that names the file."""
    try:
        with writing(target.fs, target.root, compression) as stream:
            yield stream
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=target.uri, reason=error) from error


def _text_file(target: Folder) -> AbstractContextManager[pa.NativeFile]:
    """`_whole` of a text, packed where its name says so."""
    return _whole(target, "gzip" if target.root.endswith(".gz") else None)


def _object(row: Row) -> str:
    """A row as a JSON object on one line."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)


def write_jsonl(target: Folder, rows: Iterable[Row]) -> int:
    """Write an object a line; gives their number."""
    written = 0
    with _text_file(target) as stream:
        for row in rows:
            stream.write(f"{_object(row)}\n".encode())
            written += 1
    return written


def write_json(target: Folder, rows: Iterable[Row]) -> int:
    """Write one JSON array, an object a line; gives their number."""
    written = 0
    with _text_file(target) as stream:
        for row in rows:
            stream.write(f"{',' if written else '['}\n{_object(row)}".encode())
            written += 1
        stream.write(b"\n]\n" if written else b"[]\n")
    return written


def write_parquet(target: Folder, rows: Iterator[Row], schema: pa.Schema) -> int:
    """Write rows, those of a batch at a time; gives their number."""
    written = 0
    with _whole(target) as stream, pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while batch := list(islice(rows, GROUP_ROWS)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema))
            written += len(batch)
    return written
