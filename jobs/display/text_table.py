"""Print tables as text, in parts that fit the width of the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragassay.jobs.display.visible import make_visible

GAP = 2  # terminal columns between two table columns
NAME_WIDTH = 36  # maximum width of the first column where the other columns do not fit next to it


@dataclass(frozen=True)
class TextTable:
    """A table as text, for a terminal and for the report."""

    title: str
    header: list[str]
    rows: list[list[str]]


def format_number(value: float | None, form: str = ".3f") -> str:
    """Format a number as a cell; None is an empty cell."""
    return "" if value is None else format(value, form)


def print_table(table: TextTable, console: Console) -> None:
    """Print a table in as many parts as needed to fit the width of the console."""
    for part in fit_table(table, console.width):
        if part.title:
            console.print(Text(part.title, style="italic"))
        console.print(make_rich_table(part, rule=True))
        console.print()


def make_rich_table(table: TextTable, *, rule: bool) -> Table:
    """Make a rich table from a table that fits.

    Args:
        table: The table.
        rule: Whether a rule follows the header.
    """
    result = Table(
        box=SIMPLE_HEAD if rule else None, show_edge=False, pad_edge=False, padding=(0, GAP - rule, 0, 0), header_style="bold"
    )
    for name in table.header:
        result.add_column(Text(name), no_wrap=True)
    for row in table.rows:
        result.add_row(*map(Text, row))  # Text prints cells literally
    return result


def fit_table(table: TextTable, width: int) -> list[TextTable]:
    """Divide a table into parts that fit a width: each has the first column, and as many others as there is room for.

    Args:
        table: The table.
        width: Columns of the terminal.

    Returns:
        The parts. A part omits rows in which only the first cell has a value. A first cell that is too long is cut in its
        middle.
    """
    lines = [[to_one_line(cell) for cell in line] for line in (table.header, *table.rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    room = width - sum(GAP + size for size in widths[1:])  # width for the first column if the table is not divided
    name_width = min(widths[0], room if room >= min(widths[0], NAME_WIDTH) else min(NAME_WIDTH, width // 2))
    divided = list(_divide([min(size, width - name_width - GAP) for size in widths], name_width, width))
    title = to_one_line(table.title)
    parts = []
    for part_number, (columns, sizes) in enumerate(divided):
        cells_of_lines = [
            [shorten(cells[column], size) for column, size in zip((0, *columns), (name_width, *sizes), strict=True)]
            for cells in lines
        ]
        rows = [row for row in cells_of_lines[1:] if len(divided) == 1 or any(row[1:])]
        part_title = shorten(f"{title}{', continued' if part_number else ''}", width)
        parts.append(TextTable(part_title, cells_of_lines[0], rows))
    return parts


def _divide(widths: list[int], name_width: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the columns of each part, without the first column, and their widths."""
    columns: list[int] = []
    used = name_width
    for column in range(1, len(widths)):
        if columns and used + GAP + widths[column] > width:
            yield columns, [widths[i] for i in columns]
            columns, used = [], name_width
        columns.append(column)
        used += GAP + widths[column]
    yield columns, [widths[i] for i in columns]


def to_one_line(text: str) -> str:
    """Return the text in one line, with control characters made visible."""
    return " ".join(make_visible(text).split())


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a line that is wider than `width` terminal columns. Its end stays: it often identifies the text."""
    if cell_len(text) <= width:
        return text
    tail = _cut(text[::-1], width // 3)[::-1]
    return f"{_cut(text, width - 1 - cell_len(tail))}…{tail}"


def _cut(text: str, width: int) -> str:
    text = text[:width]
    while cell_len(text) > width:  # a character may take two columns
        text = text[:-1]
    return text
