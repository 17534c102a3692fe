"""Read CSV and TSV: a header, then one row per record. A record that can't be read becomes a row with an error."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, islice
from typing import IO

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input.csv_records import TAB, Record, split_records
from ragassay.jobs.input.files import FAULT_COLUMN, FileFormat, LogFile
from ragassay.jobs.input.text_lines import FirstFault, LineGroup, LineGroups, open_bytes, with_compressions
from ragassay.jobs.storage.compression import BOM, find_compression

DELIMITERS = (",", ";", TAB, "|")
"""Delimiters of CSV, most likely first. The one that divides the header into most fields is used."""

UTF8 = "utf-8"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_EXCEL_PREFIX = "sep="  # Excel's first line may name the delimiter
_TSV_SUFFIXES = with_compressions(".tsv")


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes:
        encoding: Encoding of the text.
        delimiter: Character between fields.
        width: Number of fields of the header.
    """

    encoding: str
    delimiter: str
    width: int


@dataclass(frozen=True)
class DelimitedView:
    """How to read a CSV or TSV file.

    Attributes:
        columns: Names of the columns. All values are texts; an empty field is null.
        dialect: How the file is written.
        line_groups: Row groups of the file.
    """

    columns: tuple[str, ...]
    dialect: Dialect
    line_groups: tuple[LineGroup, ...]

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_DelimitedReader"]:
        """Open the file."""
        yield _DelimitedReader(fs, path, self)


class _DelimitedReader:
    def __init__(self, fs: pafs.FileSystem, path: str, view: DelimitedView) -> None:
        self._fs, self._path, self._view = fs, path, view
        self.row_group_sizes = [group.rows for group in view.line_groups]

    def read_batches(self, row_group: int, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        group, dialect = self._view.line_groups[row_group], self._view.dialect
        selected = [(name, i) for i, name in enumerate(self._view.columns) if columns is None or name in columns]
        with _open_lines(self._fs, self._path, dialect.encoding) as stream:
            if _can_seek(self._path, dialect.encoding):
                stream.seek(group.offset)
                lines: Iterator[bytes] = iter(stream.readline, b"")
            else:
                lines = islice(iter(stream.readline, b""), group.first_line - 1, None)
            records = split_records(lines, dialect.delimiter, dialect.width, group.first_line)
            rows = islice((record for record in records if not record.is_blank), group.rows)
            while batch := list(islice(rows, max_rows)):
                yield _make_batch(batch, selected)


def _make_batch(records: Sequence[Record], columns: Sequence[tuple[str, int]]) -> pa.RecordBatch:
    arrays = [
        pa.array([None if record.fault else record.fields[i] or None for record in records], pa.string()) for _, i in columns
    ]
    faults = pa.array([record.fault for record in records], pa.string())
    return pa.RecordBatch.from_arrays([*arrays, faults], names=[*(name for name, _ in columns), FAULT_COLUMN])


@contextmanager
def _open_lines(fs: pafs.FileSystem, path: str, encoding: str) -> Iterator[IO[bytes]]:
    """Open a file whose lines are UTF-8; what can't be decoded becomes invalid UTF-8, and so a fault of its row."""
    with open_bytes(fs, path) as stream:
        if encoding == UTF8:
            yield stream
            return
        errors = "surrogatepass" if encoding == "utf-16" else "surrogateescape"
        with io.TextIOWrapper(stream, encoding, errors, newline="\n") as text:
            lines = (line.encode(UTF8, errors) for line in text)
            yield _LineStream(lines)  # type: ignore[misc]


class _LineStream:
    """A stream of lines that can only be read from the beginning."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readline(self) -> bytes:
        """Return the next line; empty at the end."""
        return next(self._lines, b"")


def _can_seek(path: str, encoding: str) -> bool:
    return encoding == UTF8 and find_compression(path) is None


def _find_encoding(fs: pafs.FileSystem, file: LogFile) -> str:
    """Return the encoding by the byte order mark; without one, as set."""
    with open_bytes(fs, file.fs_path) as stream:
        start = stream.read(len(BOM))
    if start.startswith(_UTF16_BOMS):
        return "utf-16"
    return UTF8 if start == BOM else file.encoding


def _read_header(stream: IO[bytes], is_tsv: bool) -> tuple[list[str], str, int, int]:
    """Read the lines up to the header.

    Returns:
        The names of the columns, the delimiter, and the size and number of the lines.

    Raises:
        pa.ArrowInvalid: There is no header, or it can't be read.
    """
    size, number, named = 0, 0, None
    for line in iter(stream.readline, b""):
        number += 1
        size += len(line)
        text = line.removeprefix(BOM) if number == 1 else line
        content = text.strip().strip(b'"').decode(UTF8, "replace")
        if number == 1 and content.lower().startswith(_EXCEL_PREFIX) and len(content) <= len(_EXCEL_PREFIX) + 1:
            named = content[len(_EXCEL_PREFIX) :] or TAB  # a tab was stripped
        elif content:
            break
    else:
        raise pa.ArrowInvalid("it has no header: the first line must name the columns")
    if b"\r" in text.rstrip(b"\r\n"):
        raise pa.ArrowInvalid("its lines end with CR alone: save it with LF or CR LF")
    lines = chain([text], iter(stream.readline, b""))
    if named or is_tsv:
        header = next(split_records(lines, named or TAB, None, number))
        delimiter = named or TAB
    else:
        headers = {mark: next(split_records([text], mark, None, number)) for mark in DELIMITERS}
        delimiter = max(headers, key=lambda mark: len(headers[mark].fields) or content.count(mark) + 1)
        header = headers[delimiter]
        if header.fault:  # a name may have several lines
            header = next(split_records(lines, delimiter, None, number))
    if header.fault:
        raise pa.ArrowInvalid(f"its header can't be read: {header.fault}")
    names = [field.strip() for field in header.fields]
    while names and not names[-1]:  # a spreadsheet may write more delimiters than columns
        names.pop()
    return names, delimiter, size + header.size - len(text), number + header.lines - 1


def _inspect(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    """Read the header, find the row groups, and compute a digest of all bytes."""
    encoding = _find_encoding(fs, file)
    digest, faults = blake2b(digest_size=16), FirstFault()
    with _open_lines(fs, file.fs_path, encoding) as stream:
        names, delimiter, offset, header_lines = _read_header(stream, file.fs_path.lower().endswith(tuple(_TSV_SUFFIXES)))
    dialect = Dialect(encoding, delimiter, len(names))
    groups = LineGroups(_can_seek(file.fs_path, encoding), offset, header_lines + 1)
    with _open_lines(fs, file.fs_path, encoding) as stream:

        def read_lines() -> Iterator[bytes]:
            for line in iter(stream.readline, b""):
                digest.update(line)
                yield line

        for record in split_records(islice(read_lines(), header_lines, None), delimiter, len(names), header_lines + 1):
            offset += record.size
            faults.add(record.fault)
            groups.add(not record.is_blank, offset, record.line + record.lines)
    line_groups = groups.finish()
    digest.update(repr(dialect).encode())
    columns = tuple(name or f"column_{number}" for number, name in enumerate(names, 1))  # the index of a data frame has no name
    schema = pa.schema([(name, pa.string()) for name in columns])
    return replace(
        file,
        rows=sum(group.rows for group in line_groups),
        schema=schema,
        row_groups=len(line_groups),
        digest=digest.hexdigest(),
        faults=faults.counted,
        view=DelimitedView(columns, dialect, line_groups),
    )


DELIMITED = (
    *(FileFormat("CSV", suffix, _inspect) for suffix in with_compressions(".csv")),
    *(FileFormat("TSV", suffix, _inspect) for suffix in _TSV_SUFFIXES),
)
"""CSV and TSV: every record after the header is a row, and its values are kept."""
