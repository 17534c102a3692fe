"""Keep secrets of URIs out of everything that the command line prints, even for unforeseen errors."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from ragassay.jobs.runtime.clean_output import clean_errors, clean_process_output, print_traceback


class CleanGroup(TyperGroup):
    """The group of commands, whose errors quote a wrong command line without secrets."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **options: Any) -> Any:
        """Parse the command line. `--verbose` may also follow the command."""
        if "--verbose" in args:
            args = ["--verbose", *(arg for arg in args if arg != "--verbose")]
        with clean_errors():
            return super().make_context(info_name, args, *more, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with clean_errors():
            return super().invoke(ctx)


class CommandLine(typer.Typer):
    """The application in its own process; see `clean_process_output`."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        """Run a command; an unforeseen error ends it with its traceback and exit code 1, as Python would."""
        clean_process_output()
        try:
            return super().__call__(*args, **more)
        except Exception as error:
            print_traceback(error)
            sys.exit(1)
