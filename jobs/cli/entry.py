"""Where the command line begins and ends: nothing that it prints shows a secret of a URI, not even for an unforeseen error."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from ragassay.jobs.runtime.clean_output import clean_errors, clean_process_output, print_traceback


class CleanGroup(TyperGroup):
    """The commands; what is said of a wrong command line quotes it without secrets."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """As typer's."""
        with clean_errors():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """As typer's."""
        with clean_errors():
            return super().invoke(ctx)


class CommandLine(typer.Typer):
    """The application as a process of its own; see `clean_process_output`."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        """Run a command. An error that nobody foresaw ends it with its traceback and exit code 1, as Python would."""
        clean_process_output()
        try:
            return super().__call__(*args, **more)
        except Exception as error:
            print_traceback(error)
            sys.exit(1)
