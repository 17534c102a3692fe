"""Read the lines of text files, also compressed ones, and divide the lines into row groups."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from pyarrow import fs as pafs

from ragassay.jobs.storage.compression import COMPRESSIONS, find_compression

LINE_GROUP_BYTES = 16 << 20
"""Approximate size of a row group. Each row group can be read separately, from its first line."""

_BUFFER = 1 << 20


class LineGroup(NamedTuple):
    """Consecutive lines: offset in bytes and number (from 1) of the first line, and the number of rows in them."""

    offset: int
    first_line: int
    rows: int


class LineGroups:
    """Row groups of a file that is read line by line."""

    def __init__(self, can_seek: bool, offset: int = 0, first_line: int = 1) -> None:
        """Begin the first row group.

        Args:
            can_seek: Whether the file can be read from any offset. Otherwise it is one row group.
            offset: Offset in bytes of the first line of rows.
            first_line: Number of this line, from 1.
        """
        self._can_seek, self._offset, self._first_line, self._rows = can_seek, offset, first_line, 0
        self._groups: list[LineGroup] = []

    def add(self, rows: int, end: int, next_line: int) -> None:
        """Add rows.

        Args:
            rows: Number of rows; 0 for a blank line.
            end: Offset in bytes after them.
            next_line: Number of the line after them.
        """
        self._rows += rows
        if self._can_seek and end - self._offset >= LINE_GROUP_BYTES:
            self._close()
            self._offset, self._first_line = end, next_line

    def finish(self) -> tuple[LineGroup, ...]:
        """Return the row groups that have rows."""
        self._close()
        return tuple(self._groups)

    def _close(self) -> None:
        if self._rows:
            self._groups.append(LineGroup(self._offset, self._first_line, self._rows))
            self._rows = 0


class FirstFault:
    """The number of rows that can't be read, and why the first of them can't be."""

    def __init__(self) -> None:
        """Begin without a fault."""
        self.counted: tuple[int, str | None] = (0, None)

    def add(self, fault: str | None) -> None:
        """Add a row with the reason why it can't be read; None for other rows."""
        if fault is not None:
            self.counted = (self.counted[0] + 1, self.counted[1] or fault)


@contextmanager
def open_bytes(fs: pafs.FileSystem, path: str) -> Iterator[IO[bytes]]:
    """Open a text file. A compressed one can only be read from its beginning."""
    compression = find_compression(path)
    if compression is not None:
        with fs.open_input_stream(path, compression=compression) as packed:
            yield io.BufferedReader(packed, _BUFFER)
        return
    with fs.open_input_file(path) as source:
        yield io.BufferedReader(source, _BUFFER)


def with_compressions(*suffixes: str) -> list[str]:
    """Return suffixes of text files, each also with the suffixes of compression."""
    return [suffix + packed for packed in ("", *COMPRESSIONS) for suffix in suffixes]
