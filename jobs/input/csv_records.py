r"""Split delimited text (CSV, TSV) into records. A record that can't be read gets a reason, and no other record is lost.

A field may be in quotes, with delimiters and line ends in it; a quote in it is doubled. Because programs differ, a record that
does not fit this rule may have quotes that are escaped by a backslash (`\"`), and in TSV quotes that are part of the text. If
nothing fits, the first line is a record with a fault, and the next line begins a new record: an open quote loses one line only.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.input.text_lines import LINE_GROUP_BYTES

QUOTE, TAB = '"', "\t"


class Record(NamedTuple):
    """A record of delimited text.

    Attributes:
        line: Number of its first line, from 1.
        lines: Number of its lines.
        size: Its size in bytes.
        fields: Its fields; empty if it can't be read, or if all of them are empty.
        fault: Why it can't be read; None otherwise.
    """

    line: int
    lines: int
    size: int
    fields: list[str]
    fault: str | None

    @property
    def is_blank(self) -> bool:
        """Whether all of its fields are empty, as in a blank line."""
        return self.fault is None and not self.fields


class _MalformedError(Exception):
    """A record that has a misplaced quote; the text states where."""


@dataclass(frozen=True)
class _Line:
    """A line: its text without the line end, the line end, its size in bytes, and whether it is valid UTF-8."""

    text: str
    end: str
    size: int
    is_utf8: bool


class _Lines:
    """Lines of a file, of which the next ones can be read in advance."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines, self._ahead, self._bytes = iter(lines), deque[_Line](), 0

    def peek(self, index: int) -> _Line | None:
        """Return a line, 0 for the next one; None after the end of the file, and too far from the next one."""
        while len(self._ahead) <= index:
            data = next(self._lines, None) if self._bytes < LINE_GROUP_BYTES else None
            if data is None:
                return None
            self._ahead.append(_decode_line(data))
            self._bytes += len(data)
        return self._ahead[index]

    def take(self, count: int) -> list[_Line]:
        """Return and remove lines."""
        taken = [self._ahead.popleft() for _ in range(count)]
        self._bytes -= sum(line.size for line in taken)
        return taken


def split_records(lines: Iterable[bytes], delimiter: str, width: int | None, first_line: int = 1) -> Iterator[Record]:
    """Split lines into records.

    Args:
        lines: Lines with their line ends.
        delimiter: Character between fields. With a tab, a field that begins with a quote may be plain text.
        width: Number of fields of a record; None accepts any number.
        first_line: Number of the first line.

    Yields:
        All records, also blank ones.
    """
    ahead, number = _Lines(lines), first_line
    while (line := ahead.peek(0)) is not None:
        fields, count, fault = _parse_record(ahead, line, delimiter, width)
        used = ahead.take(count)
        bad = next((i for i, line in enumerate(used) if not line.is_utf8), None)
        if bad is not None:
            fault = f"line {number + bad}: invalid UTF-8"
        elif fault is not None:
            fault = f"line {number}: {fault}" if count == 1 else f"lines {number} to {number + count - 1}: {fault}"
        if fault is not None or not any(field.strip() for field in fields):
            fields = []
        yield Record(number, count, sum(line.size for line in used), fields, fault)
        number += count


def _parse_record(lines: _Lines, first: _Line, delimiter: str, width: int | None) -> tuple[list[str], int, str | None]:
    """Parse the next record.

    Returns:
        Its fields, the number of its lines, and why it can't be read.
    """
    literal = first.text.split(delimiter)
    if QUOTE not in first.text:
        return literal, 1, _width_fault(literal, width)
    try:
        fields, count = _parse_quoted(lines, first, delimiter, is_escaped=False)
        fault = _width_fault(fields, width)
        malformed = False
    except _MalformedError as error:
        fields, count, fault, malformed = [], 1, str(error), True
        try:
            escaped, escaped_count = _parse_quoted(lines, first, delimiter, is_escaped=True)
        except _MalformedError:
            pass
        else:
            if _width_fault(escaped, width) is None:
                return escaped, escaped_count, None
    if fault and delimiter == TAB and (malformed or count > 1) and _width_fault(literal, width) is None:
        return literal, 1, None
    return fields, count, fault


def _width_fault(fields: list[str], width: int | None) -> str | None:
    """Return the fault of a record with missing fields, or with more fields that are not empty; these are removed."""
    if width is None or len(fields) == width or not any(field.strip() for field in fields):
        return None
    if len(fields) > width and not any(field.strip() for field in fields[width:]):
        del fields[width:]
        return None
    return f"{format_count(len(fields), 'field')}, but the header has {width}"


def _parse_quoted(lines: _Lines, line: _Line, delimiter: str, *, is_escaped: bool) -> tuple[list[str], int]:
    """Parse a record that contains quotes; return its fields and the number of its lines."""
    fields: list[str] = []
    position, count = 0, 1
    while True:
        start = _skip_spaces(line.text, position)
        if not line.text.startswith(QUOTE, start):
            end = line.text.find(delimiter, position)
            fields.append(line.text[position:] if end < 0 else line.text[position:end])
            if end < 0:
                return fields, count
            position = end + 1
            continue
        parts: list[str] = []
        position, opened_in = start + 1, count
        while True:
            quote = line.text.find(QUOTE, position)
            if quote < 0:
                parts += [line.text[position:], line.end]
                following = lines.peek(count)
                if following is None:
                    raise _MalformedError(f"the quote that opens field {len(fields) + 1} is not closed")
                line, position, count = following, 0, count + 1
                continue
            part = line.text[position:quote]
            slashes = len(part) - len(part.rstrip("\\")) if is_escaped else 0
            parts.append(part[: len(part) - (slashes + 1) // 2])
            position = quote + 1
            if slashes % 2:
                parts.append(QUOTE)
            elif not is_escaped and line.text.startswith(QUOTE, position):
                parts.append(QUOTE)
                position += 1
            else:
                break
        position = _skip_spaces(line.text, position)
        if position < len(line.text) and line.text[position] != delimiter:
            place = "not closed" if opened_in < count else "closed, but text follows"
            raise _MalformedError(f"the quote that opens field {len(fields) + 1} is {place}")
        fields.append("".join(parts))
        if position >= len(line.text):
            return fields, count
        position += 1


def _skip_spaces(text: str, position: int) -> int:
    while text.startswith(" ", position):
        position += 1
    return position


def _decode_line(data: bytes) -> _Line:
    try:
        text, is_utf8 = data.decode("utf-8"), True
    except UnicodeDecodeError:
        text, is_utf8 = data.decode("utf-8", "surrogateescape"), False
    content = text.rstrip("\r\n")
    return _Line(content, text[len(content) :], len(data), is_utf8)
