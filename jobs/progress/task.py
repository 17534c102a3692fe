"""A piece of work with one bar: whoever does it says how much there is, and how much is done, wherever it stands."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from rich.console import Console

from ragassay.jobs.progress.bar import Bar
from ragassay.jobs.progress.show import shown

_current: ContextVar[Bar | None] = ContextVar("task", default=None)


@contextmanager
def task(
    console: Console,
    phase: str,
    stage: str = "",
    total: int | None = None,
    unit: str = "",
    *,
    tokens: bool = False,
    count: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Show a piece of work while a block of code does it; `expect`, `advance` and `reach` are of it.

    Args:
        console: Where to; see `shown`.
        phase: What is done.
        stage: With what.
        total: How much there is; None where that is not known, or will be known (`expect`).
        unit: What is counted.
        tokens: Whether that is tokens.
        count: Counts what is done, where nobody calls `advance`.
    """
    bar = Bar(phase, stage, 0, total, unit)

    def look() -> list[Bar]:
        if count is not None:
            bar.done = max(bar.done, count())
        done = bar.done if bar.total is None else min(bar.done, bar.total)
        return [replace(bar, done=done, tokens=done if tokens else None)]

    before = _current.set(bar)
    try:
        with shown(look, console):
            yield
            bar.done = max(bar.done, bar.total or 0)
    finally:
        _current.reset(before)


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """Show that the work waits while a block of code does: in the task that is open, or as one of its own.

    Args:
        console: Where to, if no task is open.
        what: For what.
    """
    bar = _current.get()
    if bar is None:
        began = time.monotonic()
        with task(console, "waiting", what, unit="seconds", count=lambda: int(time.monotonic() - began)):
            yield
        return
    before = bar.phase, bar.stage
    bar.phase, bar.stage = "waiting", what
    try:
        yield
    finally:
        bar.phase, bar.stage = before


def expect(amount: int, unit: str) -> None:
    """There is so much more to do in the task that is open; where none is, or it counts something else, this tells nobody."""
    bar = _open_bar(unit)
    bar.total = (bar.total or 0) + amount


def advance(amount: int, unit: str) -> None:
    """So much more is done in the task that is open; see `expect`."""
    _open_bar(unit).done += amount


def reach(amount: int, unit: str) -> None:
    """So much is done by now in the task that is open; see `expect`."""
    bar = _open_bar(unit)
    bar.done = max(bar.done, amount)


def _open_bar(unit: str) -> Bar:
    bar = _current.get()
    return bar if bar is not None and bar.unit == unit else Bar("")  # which nobody looks at
