"""What commands print: a name and a text a line."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.display.address import without_secrets


def print_lines(lines: Iterable[tuple[str, str]], console: Console) -> None:
    """Print lines in two columns, the names bold; texts mean nothing but themselves, and show no secret of a URI."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in lines:
        table.add_row(name, escape(without_secrets(text)))
    console.print(table)
