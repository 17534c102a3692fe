"""Print lines of a name and a text."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.display.address import hide_secrets


def print_lines(lines: Iterable[tuple[str, str]], console: Console) -> None:
    """Print names and texts in two columns, the names bold. Texts are printed literally, without the secrets of URIs."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, text in lines:
        table.add_row(name, escape(hide_secrets(text)))
    console.print(table)
