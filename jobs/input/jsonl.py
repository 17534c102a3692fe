"""JSON Lines: an object a line. A line that is none is a row all the same, and says why it can't be read."""

import io
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input.files import FAULT, Format, LogFile
from ragassay.jobs.input.json_types import MOST_KEYS, Seen, fitted

STRETCH_BYTES = 16 << 20
"""Lines of about so many bytes are a row group: a part that can be read alone, from where it begins."""

_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"
_NESTED = 200  # brackets of a line that may be deeper than they can be written again


class Stretch(NamedTuple):
    """Neighbouring lines: byte at which the first begins, its number from 1, and how many of them are not blank."""

    offset: int
    line: int
    rows: int


@dataclass(frozen=True)
class Lines:
    """How a file of JSON Lines is read.

    Attributes:
        schema: Its columns.
        stretches: Its row groups.
    """

    schema: pa.Schema
    stretches: tuple[Stretch, ...]

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_Reader"]:
        """Open it."""
        yield _Reader(fs, path, self)


class _Reader:
    def __init__(self, fs: pafs.FileSystem, path: str, lines: Lines) -> None:
        self._fs, self._path, self._lines = fs, path, lines
        self.sizes = [stretch.rows for stretch in lines.stretches]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        stretch, schema = self._lines.stretches[group], self._lines.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns if name in schema.names])
        with _stream(self._fs, self._path) as stream:
            if stretch.offset:
                stream.seek(stretch.offset)
            numbered = islice(_rows(stream, stretch.line), stretch.rows)
            while batch := list(islice(numbered, rows)):
                yield _batch([parsed(number, line) for number, line in batch], schema)


def parsed(number: int, line: bytes) -> tuple[dict[str, Any], str | None]:
    """The object of a line, and why there is none.

    Args:
        number: Of the line, from 1.
        line: Its bytes.
    """
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        found = json.loads(text)
        if not isinstance(found, dict):
            return {}, f"line {number}: a JSON object is wanted, and this is a {type(found).__name__}"
        if "\\ud" in text.lower() or text.count("[") + text.count("{") > _NESTED:
            json.dumps(found, ensure_ascii=False).encode()  # half a character pair has no bytes, and some depth is too much
        return found, None
    except UnicodeDecodeError:
        return {}, f"line {number}: no UTF-8"
    except UnicodeEncodeError:
        return {}, f"line {number}: half a character pair, which is no text"
    except RecursionError:
        return {}, f"line {number}: nested too deeply"
    except ValueError as error:  # a json.JSONDecodeError, or a number of too many digits
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "a number too long"
        return {}, f"line {number}: no JSON: {reason}"


def _batch(rows: Sequence[tuple[dict[str, Any], str | None]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array([fitted(row.get(f.name), f.type) for row, _ in rows], f.type) for f in schema]
    faults = pa.array([fault for _, fault in rows], pa.string())
    return pa.RecordBatch.from_arrays([*arrays, faults], schema=pa.schema([*schema, pa.field(FAULT, pa.string())]))


def _rows(stream: IO[bytes], number: int) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers."""
    while line := stream.readline():
        if not _blank(line):
            yield number, line
        number += 1


def _blank(line: bytes) -> bool:
    return not line.removeprefix(_BOM).strip()


@contextmanager
def _stream(fs: pafs.FileSystem, path: str) -> Iterator[IO[bytes]]:
    if path.lower().endswith(".gz"):
        with fs.open_input_stream(path, compression="gzip") as packed:
            yield io.BufferedReader(packed, _BUFFER)
        return
    with fs.open_input_file(path) as source:
        yield io.BufferedReader(source, _BUFFER)


def _look(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    """One pass over the file: types, where stretches begin, and a digest of all bytes."""
    seen, digest = Seen(), blake2b(digest_size=16)
    stretches: list[Stretch] = []
    offset, start, first, rows = 0, 0, 1, 0
    whole = file.fs_path.lower().endswith(".gz")  # where nothing can be read but from its beginning
    with _stream(fs, file.fs_path) as stream:
        for number, line in enumerate(iter(stream.readline, b""), start=1):
            digest.update(line)
            offset += len(line)
            if not _blank(line):
                seen.add(parsed(number, line)[0])
                rows += 1
            if offset - start >= STRETCH_BYTES and not whole:
                stretches.append(Stretch(start, first, rows))
                start, first, rows = offset, number + 1, 0
    if rows:
        stretches.append(Stretch(start, first, rows))
    stretches = [stretch for stretch in stretches if stretch.rows]
    if len(seen.fields) > MOST_KEYS:
        raise pa.ArrowInvalid(f"its objects have more than {MOST_KEYS} different keys, which would be columns")
    schema = pa.schema([(name, column.type()) for name, column in seen.fields.items()])
    return replace(
        file,
        rows=sum(stretch.rows for stretch in stretches),
        schema=schema,
        row_groups=len(stretches),
        digest=digest.hexdigest(),
        view=Lines(schema, tuple(stretches)),
    )


def agreed(files: Sequence[LogFile]) -> list[LogFile]:
    """Files of an input, where columns of JSON Lines that no type holds in all of them are JSON text in each."""
    mine = [file.schema for file in files if isinstance(file.view, Lines) and file.schema is not None]
    texts = set()
    for name in dict.fromkeys(name for schema in mine for name in schema.names):
        kinds = [pa.schema([schema.field(name)]) for schema in dict.fromkeys(mine) if name in schema.names]
        try:
            pa.unify_schemas(kinds, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            texts.add(name)
    return [_as_text(file, texts) if isinstance(file.view, Lines) and texts else file for file in files]


def _as_text(file: LogFile, names: Collection[str]) -> LogFile:
    assert isinstance(file.view, Lines) and file.schema is not None
    schema = pa.schema([pa.field(f.name, pa.string()) if f.name in names else f for f in file.schema])
    return replace(file, schema=schema, view=replace(file.view, schema=schema))


JSON_LINES = tuple(Format("JSON Lines", suffix, _look) for suffix in (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"))
