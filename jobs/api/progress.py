"""Show progress in a terminal or a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TextIO

from ragassay.jobs.config.job import Job
from ragassay.jobs.display.library_log import capture_library_output, find_log, get_terminal
from ragassay.jobs.display.visible import VisibleText
from ragassay.pipeline.errors import ModelError


@dataclass(frozen=True)
class Progress:
    """Functions that report progress.

    Attributes:
        report_step: Shows the name of the current step.
        advance: Adds a number of finished rows.
    """

    report_step: Callable[[str], None]
    advance: Callable[[int], None]


NO_PROGRESS = Progress(lambda _: None, lambda _: None)


@contextmanager
def show_progress(rows: int | None = None, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show a spinner with the current step, and a bar over rows. Show nothing outside a terminal or a notebook.

    Args:
        rows: Number of rows; None shows no bar.
        stream: Stream to write to; None is stderr.
    """
    from rich.console import Console

    from ragassay.jobs.display.live import can_update

    console = Console(file=stream, stderr=True, emoji=False, markup=False, highlight=False)
    if not can_update(console):
        yield NO_PROGRESS
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console.push_render_hook(VisibleText())
    bar_columns = [BarColumn(), MofNCompleteColumn()] if rows else []
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar_columns, TimeElapsedColumn()]
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=rows)
        yield Progress(
            lambda text: bar.update(task, description=text),
            lambda count: bar.advance(task, count),
        )


@contextmanager
def show_progress_only(job: Job, rows: int | None = None) -> Iterator[Progress]:
    """Show progress, while a log file gets what the libraries of engines print; a `ModelError` names the file.

    Args:
        job: The job; without an engine nothing is kept off the terminal.
        rows: See `show_progress`.
    """
    capture = capture_library_output() if job.members.local_pools else nullcontext()
    with capture, show_progress(rows, get_terminal()) as progress:
        try:
            yield progress
        except ModelError as error:
            if path := find_log():
                error.add_note(f"messages of libraries: {path}")
            raise
