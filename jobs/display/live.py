"""Find out whether a console can show progress that changes in place."""

from importlib.util import find_spec

from rich.console import Console


def can_update(console: Console) -> bool:
    """Return whether a console is a terminal, or a notebook with the widgets that rich updates."""
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
