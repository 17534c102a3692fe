"""How every command ends: with its output, or with one message."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated

import typer
from rich.console import Console

from ragassay.jobs.display.visible import CleanText, VisibleText
from ragassay.jobs.progress.show import LogFormat, set_log_format
from ragassay.jobs.progress.task import task
from ragassay.jobs.runtime.endings import (
    Terminated,
    find_interruption,
    handle_sigterm,
    is_disk_full,
    make_disk_full_error,
    restore_sigterm,
)
from ragassay.jobs.storage.object_store import gave_way, gave_way_error
from ragassay.pipeline.errors import RagassayError

DRIFT_EXIT = 3
"""Exit code of --fail-on-drift: 1 is an error, 2 a wrong command line."""

PLAIN_WIDTH = 200
"""Columns where the output is no terminal: tables go to files and schedulers' logs unfolded."""


def _log_as(wanted: LogFormat) -> LogFormat:
    set_log_format(wanted)
    return wanted


Log = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        callback=_log_as,
        help="Progress as text; or as json, objects on lines of stderr, for a program to read.",
    ),
]
"""Option of every command that may take seconds; who takes it need not look at it."""


@contextmanager
def our_errors() -> Iterator[Console]:
    """Our own errors end in one message and exit code 1; anything else is a fault of the program, and shows its traceback."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.basicConfig(level=logging.WARNING)
    plain = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    said = new_console(stderr=True)
    try:
        with restore_sigterm():
            handle_sigterm()
            yield new_console(width=plain)
    except (Exception, KeyboardInterrupt) as error:
        stop = find_interruption(error)  # what breaks while it is being stopped is no fault of its own
        if stop is not None:
            said.print("stopped; the same command goes on where it stopped")
            sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))
        if isinstance(error, OSError) and is_disk_full(error):
            error = make_disk_full_error(error)
        elif gave_way(error):
            error = gave_way_error(error)
        if isinstance(error, RagassayError):
            said.print(f"error[{error.code}]: {error}")
            sys.exit(1)
        raise


def new_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console to which everything is text: neither markup nor emoji codes nor escape sequences of a log mean anything.

    Lines show no secret of a URI (`print_lines` and `Bar` see to tables and bars).
    """
    console = Console(stderr=stderr, soft_wrap=True, width=width, emoji=False, markup=not stderr, highlight=not stderr)
    console.push_render_hook(CleanText())
    console.push_render_hook(VisibleText())
    return console


def doing(phase: str, stage: str = "", total: int | None = None, unit: str = "") -> AbstractContextManager[None]:
    """A task of a command whose result goes to stdout: its bar or lines go to stderr. See `progress.task`."""
    return task(new_console(stderr=True), phase, stage, total, unit)
