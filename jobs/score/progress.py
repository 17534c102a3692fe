"""Progress of a plan: how much is done so far, a live bar on a terminal and plain lines elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LIVE_SECONDS = 1.0
PLAIN_SECONDS = 15.0


@contextmanager
def progress(
    count: Callable[[], int], total: int, console: Console, doing: str = "scoring", what: str = "rows"
) -> Iterator[None]:
    """Show progress of a block of code.

    Args:
        count: Counts what is done.
        total: What is to be done, with what an earlier, broken run has done.
        console: Where to; a terminal gets a live bar.
        doing: The name of the work.
        what: What is counted.
    """
    done = threading.Event()
    target = _live if console.is_terminal else _plain
    thread = threading.Thread(target=target, args=(count, total, console, done, doing, what), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=10)


def _live(count: Callable[[], int], total: int, console: Console, done: threading.Event, doing: str, what: str) -> None:
    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        while not done.wait(LIVE_SECONDS):
            bar.update(task, completed=min(_safely(count), total))


def _plain(count: Callable[[], int], total: int, console: Console, done: threading.Event, doing: str, what: str) -> None:
    started = time.monotonic()
    while not done.wait(PLAIN_SECONDS):
        console.print(f"{doing}: {min(_safely(count), total)} of {total} {what}, {time.monotonic() - started:.0f} s")


def _safely(count: Callable[[], int]) -> int:
    """A file may be moved while it is listed; the next look sees it."""
    try:
        return count()
    except (OSError, pa.ArrowException):
        return 0
