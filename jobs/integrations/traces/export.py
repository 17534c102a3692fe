"""The files of an export of traces, and their records."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import StringIO, TextIOWrapper
from typing import Any, TextIO

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.find import find_files
from ragassay.jobs.input.parquet import read_footer_bytes
from ragassay.jobs.input.text import escape_invalid_utf8
from ragassay.jobs.input.types import map_children, to_plain
from ragassay.jobs.integrations.traces.fields import text
from ragassay.schemas.traces import ExportFile

BATCH_ROWS = 512
PARQUET = ".parquet"
LINES = (".jsonl", ".ndjson", ".json")
SUFFIXES = (PARQUET, *LINES, *(f"{suffix}.gz" for suffix in LINES))
_CHUNK = 1 << 20
LONGEST_LINE = 32 << 20
"""Characters of the longest line that is read as a record: as Python has it, it takes some ten times as much memory."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Damage:
    """A part of a file that can't be read.

    Attributes:
        uri: The file.
        where: Which part, in words.
        reason: Why.
    """

    uri: str
    where: str
    reason: str


def export_files(uri: str) -> Logs:
    """Find the files of an export by the ends of their names: a file, a folder (searched below) or a glob.

    Raises:
        InputError: There is none, or the place can't be read.
    """
    return find_files(uri, SUFFIXES, "have traces written as Parquet or JSON Lines")


def seal(fs: pafs.FileSystem, file: LogFile) -> ExportFile:
    """What tells whether a file is the one that was read; its bytes are read, of Parquet the footer alone."""
    found = blake2b(digest_size=16)
    with fs.open_input_file(file.fs_path) as source:
        if file.fs_path.lower().endswith(PARQUET):
            found.update(read_footer_bytes(source))
        else:
            while chunk := source.read(_CHUNK):
                found.update(chunk)
    return ExportFile(file.size, file.mtime, found.hexdigest())


def records(
    fs: pafs.FileSystem, file: LogFile, damaged: Callable[[Damage], None], buffer: int | None = None
) -> Iterator[Record]:
    """The records of a file, one by one: rows of Parquet, lines of JSON, or the items of one JSON list.

    Args:
        fs: File system.
        file: The file.
        damaged: Told of what can't be read; it may raise.
        buffer: Bytes of a column of Parquet that are read at a time; those of a row group by default.

    Raises:
        OSError, pa.ArrowException: The file can't be opened.
    """
    if file.fs_path.lower().endswith(PARQUET):
        yield from _rows(fs, file, damaged, buffer)
    else:
        with closing(fs.open_input_stream(file.fs_path, compression=None)) as stream:
            zipped = file.fs_path.lower().endswith(".gz")
            with TextIOWrapper(gzip.open(stream) if zipped else stream, encoding="utf-8-sig", errors="replace") as lines:
                try:
                    yield from _lines(lines, file, damaged)
                except (OSError, EOFError, zlib.error) as error:  # a compressed file that is cut off
                    damaged(Damage(file.uri, "its end", str(error)))


def _rows(fs: pafs.FileSystem, file: LogFile, damaged: Callable[[Damage], None], buffer: int | None) -> Iterator[Record]:
    with pq.ParquetFile(file.fs_path, filesystem=fs, pre_buffer=False, buffer_size=buffer or 0) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            batches = parquet.iter_batches(BATCH_ROWS, row_groups=[group])
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, pa.ArrowException) as error:
                    damaged(Damage(file.uri, f"row group {group}", str(error).splitlines()[0]))
                    break
                if batch is None:
                    break
                yield from _as_records(batch, damaged, Damage(file.uri, f"a row of row group {group}", ""))


def _as_records(batch: pa.RecordBatch, damaged: Callable[[Damage], None], damage: Damage) -> Iterator[Record]:
    """Rows as Python has them, less those with what it can't have, such as a time in the year 10,000.

    Bytes that are no UTF-8 are shown as they are elsewhere.
    """
    try:
        columns = [escape_invalid_utf8(_coarse(to_plain(column)))[0].to_pylist() for column in batch.columns]
    except (ValueError, OverflowError) as error:
        if len(batch) == 1:
            damaged(replace(damage, reason=text(error) or type(error).__name__))
        else:
            for at in range(len(batch)):
                yield from _as_records(batch.slice(at, 1), damaged, damage)
        return
    yield from (dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True))


def _coarse(array: pa.Array) -> pa.Array:
    """Times as Python can have them, without nanoseconds; the rest stays."""
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return array.cast(pa.timestamp("us", array.type.tz), safe=False)
    if pa.types.is_duration(array.type) or pa.types.is_time(array.type):
        return array.cast(pa.int64() if array.type.bit_width == 64 else pa.int32())
    return map_children(array, _coarse) if pa.types.is_nested(array.type) and _holds_times(array.type) else array


def _holds_times(kind: pa.DataType) -> bool:
    """Whether a plain type is a time, or has one inside."""
    if pa.types.is_nested(kind):
        return any(_holds_times(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind))


def _lines(lines: TextIO, file: LogFile, damaged: Callable[[Damage], None]) -> Iterator[Record]:
    """Records of JSON Lines; of a file that is one JSON value, over many lines or in a list, its items."""
    number, line = 1, lines.readline()  # it may be a whole file
    while line:
        try:
            if number > 1 and len(line) == LONGEST_LINE and not line.endswith("\n"):
                while (rest := lines.readline(_CHUNK)) and not rest.endswith("\n"):
                    pass
                raise ValueError(f"it has more than {LONGEST_LINE >> 20} Mi characters")
            if line.strip():
                yield from _items(json.loads(line))
        except (ValueError, RecursionError) as error:
            reason = error
            if number == 1 and isinstance(error, json.JSONDecodeError) and error.pos >= len(line.rstrip()):
                rest = lines.read()  # nothing is wrong with it but its end: it is a value over many lines
                try:
                    yield from _items(json.loads(line + rest))
                    return
                except (ValueError, RecursionError) as wrong:
                    reason, lines = wrong, StringIO(rest)
            damaged(Damage(file.uri, f"line {number}", text(reason) or "no JSON"))
        number, line = number + 1, lines.readline(LONGEST_LINE)


def _items(value: Any) -> Iterator[Record]:
    """The records of a value: itself, or the items of a list, or of one that an object calls `data`, `runs` or `traces`.

    Raises:
        ValueError: It is a number or a text.
    """
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("data", "runs", "traces") if isinstance(value.get(name), list)), [value])
    if not isinstance(value, list):
        raise ValueError("no object")
    yield from (item for item in value if isinstance(item, Mapping))
