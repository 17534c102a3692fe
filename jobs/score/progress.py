"""Progress of plan 1: rows committed so far, a live bar on a terminal and plain lines elsewhere."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ragassay.jobs.score.checkpoint import CommittedRows

LIVE_SECONDS = 1.0
PLAIN_SECONDS = 15.0


@contextmanager
def progress(count: CommittedRows, total: int, console: Console) -> Iterator[None]:
    """Show progress of a block of code that commits rows.

    Args:
        count: Counts them.
        total: Rows to commit, those of an earlier, broken run included.
        console: Where to; a terminal gets a live bar.
    """
    done = threading.Event()
    target = _live if console.is_terminal else _plain
    thread = threading.Thread(target=target, args=(count, total, console, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=10)


def _live(count: CommittedRows, total: int, console: Console, done: threading.Event) -> None:
    columns = (
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("scoring", total=total)
        while not done.wait(LIVE_SECONDS):
            bar.update(task, completed=min(_safely(count), total))


def _plain(count: CommittedRows, total: int, console: Console, done: threading.Event) -> None:
    started = time.monotonic()
    while not done.wait(PLAIN_SECONDS):
        console.print(f"scoring: {min(_safely(count), total)} of {total} rows, {time.monotonic() - started:.0f} s")


def _safely(count: CommittedRows) -> int:
    """A file may be moved while it is listed; the next look sees it."""
    try:
        return count()
    except (OSError, pa.ArrowException):
        return 0
