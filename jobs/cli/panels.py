"""The help panels that group commands, and the parts of help that all commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLE = "Example: "
"""Before the example that the help of a command ends with."""

DRIFT_EXIT = 3

EXIT_CODES = {
    0: "success, whatever the verdicts are",
    1: "an error; nothing is lost, and the message states the remedy",
    2: "a wrong command line",
    DRIFT_EXIT: "drift, with --fail-on-drift",
    130: "interrupted (Ctrl-C); the same command resumes",
    143: "terminated (SIGTERM); the same command resumes",
}
"""Exit code -> its meaning."""


class Panel(typer.Typer):
    """Commands of one help panel.

    Attributes:
        title: Title of the panel.
    """

    def __init__(self, title: str) -> None:
        """Create an empty panel."""
        super().__init__()
        self.title = title

    def add(self, example: str) -> Callable[[Function], Function]:
        """Return a decorator that adds a command.

        Args:
            example: An example without `ragassay`; its first word is the name of the command.
        """
        return self.command(example.split(maxsplit=1)[0], rich_help_panel=self.title, epilog=f"{EXAMPLE}ragassay {example}")
