"""Run the body of a command: with a console, and with one message for an error."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console

from ragassay.jobs.display.library_log import capture_library_output, find_log, get_output, get_terminal, show_log_records
from ragassay.jobs.display.visible import CleanText, VisibleText
from ragassay.jobs.progress.task import task
from ragassay.jobs.runtime.endings import (
    Terminated,
    find_interruption,
    handle_sigterm,
    is_disk_full,
    make_disk_full_error,
    restore_sigterm,
)
from ragassay.pipeline.engines.verbosity import limit_library_messages
from ragassay.pipeline.errors import ModelError, RagassayError

PLAIN_WIDTH = 200
"""Width of the console if the output is not a terminal, so that tables in files and logs of schedulers are not folded."""


@contextmanager
def command_console() -> Iterator[Console]:
    """Provide the console of a command, and end the command with one message and exit code 1 for an error of our own.

    Any other exception is a bug and shows its traceback.
    """
    limit_library_messages()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    show_log_records()
    with capture_library_output():
        yield from _run_command()


def _run_command() -> Iterator[Console]:
    plain = None if (get_output() or sys.stdout).isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
    error_console = new_console(stderr=True)
    try:
        with restore_sigterm():
            handle_sigterm()
            yield new_console(width=plain)
    except (Exception, KeyboardInterrupt) as error:
        from ragassay.jobs.storage.store_retries import is_store_error, store_error

        stop = find_interruption(error)  # an error while the command stops is a consequence of the interruption
        if stop is not None:
            error_console.print("stopped; run the same command again to resume")
            sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))
        if isinstance(error, OSError) and is_disk_full(error):
            error = make_disk_full_error(error)
        elif is_store_error(error):
            error = store_error(error)
        if isinstance(error, RagassayError):
            error_console.print(f"error[{error.code}]: {error}")
            if isinstance(error, ModelError):
                _name_log(error_console)
            sys.exit(1)
        _name_log(error_console)
        raise


def _name_log(console: Console) -> None:
    """Name the file with the messages of libraries, if there are any."""
    path = find_log()
    if path is not None:
        console.print(f"messages of libraries: {path}")


def new_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Create a console that shows markup, emoji codes and escape sequences of logs as plain text.

    It removes secrets of URIs from lines; `print_lines` and `Bar` remove them from tables and bars.
    """
    console = Console(
        file=get_terminal() if stderr else get_output(),
        stderr=stderr,
        soft_wrap=True,
        width=width,
        emoji=False,
        markup=not stderr,
        highlight=not stderr,
    )
    console.push_render_hook(CleanText())
    console.push_render_hook(VisibleText())
    return console


def show_task(phase: str, stage: str = "", total: int | None = None, unit: str = "") -> AbstractContextManager[None]:
    """Show a task's progress on stderr, since the result of the command goes to stdout; see `progress.task`."""
    return task(new_console(stderr=True), phase, stage, total, unit)
