"""Tables as text, cut so that no line of a terminal is too long for them."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragassay.jobs.display.visible import visible

GAP = 2  # columns of the terminal between two of the table
NAME = 36  # that the first column may take where the others don't fit beside it


@dataclass(frozen=True)
class TextTable:
    """A table as text, for a terminal and for the report."""

    title: str
    header: list[str]
    rows: list[list[str]]


def number(value: float | None, form: str = ".3f") -> str:
    """A number as a cell; empty where there is none."""
    return "" if value is None else format(value, form)


def print_table(table: TextTable, console: Console) -> None:
    """Print a table in as many parts as it takes to fit the console's width."""
    for part in fitted(table, console.width):
        if part.title:
            console.print(Text(part.title, style="italic"))
        console.print(rich_table(part, rule=True))
        console.print()


def rich_table(table: TextTable, *, rule: bool) -> Table:
    """A table that fits, for rich; with or without a rule below its header."""
    found = Table(
        box=SIMPLE_HEAD if rule else None, show_edge=False, pad_edge=False, padding=(0, GAP - rule, 0, 0), header_style="bold"
    )
    for name in table.header:
        found.add_column(Text(name), no_wrap=True)
    for row in table.rows:
        found.add_row(*map(Text, row))  # cells mean nothing but themselves
    return found


def fitted(table: TextTable, width: int) -> list[TextTable]:
    """A table in parts that fit a width: each has the first column, and of the others as many as have room.

    Args:
        table: The table.
        width: Columns of the terminal.

    Returns:
        The parts. A row that has nothing in a part but its name is left out of it; a name too long is cut in its middle.
    """
    lines = [[one_line(cell) for cell in line] for line in (table.header, *table.rows)]
    wide = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    room = width - sum(GAP + size for size in wide[1:])  # what is left for the names if all stays together
    name = min(wide[0], room if room >= min(wide[0], NAME) else min(NAME, width // 2))
    parts = list(_parts([min(size, width - name - GAP) for size in wide], name, width))
    title = one_line(table.title)
    found = []
    for number, (columns, sizes) in enumerate(parts):
        cut = [
            [shortened(cells[column], size) for column, size in zip((0, *columns), (name, *sizes), strict=True)]
            for cells in lines
        ]
        rows = [row for row in cut[1:] if len(parts) == 1 or any(row[1:])]
        found.append(TextTable(shortened(f"{title}{', continued' if number else ''}", width), cut[0], rows))
    return found


def _parts(wide: list[int], name: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Numbers of the columns that stand beside the first one in each part, and how wide they are."""
    columns: list[int] = []
    used = name
    for column in range(1, len(wide)):
        if columns and used + GAP + wide[column] > width:
            yield columns, [wide[i] for i in columns]
            columns, used = [], name
        columns.append(column)
        used += GAP + wide[column]
    yield columns, [wide[i] for i in columns]


def one_line(text: str) -> str:
    """A text as it will be shown, in one line."""
    return " ".join(visible(text).split())


def shortened(text: str, width: int) -> str:
    """A text of a line that takes no more columns of a terminal than this: its end stays too, which often tells it apart."""
    if cell_len(text) <= width:
        return text
    tail = _cut(text[::-1], width // 3)[::-1]
    return f"{_cut(text, width - 1 - cell_len(tail))}…{tail}"


def _cut(text: str, width: int) -> str:
    text = text[:width]
    while cell_len(text) > width:  # a character may take two columns
        text = text[:-1]
    return text
