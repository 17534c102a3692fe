"""Show a piece of work as one bar. The code that does the work reports its amounts, however deep in the call stack."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from rich.console import Console

from ragassay.jobs.progress.bar_state import Bar
from ragassay.jobs.progress.show import show_progress

_current_bar: ContextVar[Bar | None] = ContextVar("task", default=None)


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
    """Show the block as a task. Inside it, `expect`, `advance` and `raise_done_to` change the task's bar.

    Args:
        console: Where to show it, see `show_progress`.
        phase: What the task does.
        stage: What it works on.
        total: Amount to do; None if unknown, or if `expect` sets it later.
        unit: Unit of the amounts.
        tokens: Whether the unit is computed tokens.
        count: Counts the amount done, if no code calls `advance`.
    """
    bar = Bar(phase, stage, 0, total, unit)

    def get_bars() -> list[Bar]:
        if count is not None:
            bar.done = max(bar.done, count())
        done = bar.done if bar.total is None else min(bar.done, bar.total)
        return [replace(bar, done=done, tokens=done if tokens else None)]

    before = _current_bar.set(bar)
    try:
        with show_progress(get_bars, console):
            yield
            bar.done = max(bar.done, bar.total or 0)
    finally:
        _current_bar.reset(before)


@contextmanager
def waiting(console: Console, target: str) -> Iterator[None]:
    """Show that the block waits: in the open task, or as a task of its own.

    Args:
        console: Where to show it if no task is open.
        target: What the block waits for.
    """
    bar = _current_bar.get()
    if bar is None:
        began = time.monotonic()
        with task(console, "waiting", target, unit="seconds", count=lambda: int(time.monotonic() - began)):
            yield
        return
    before = bar.phase, bar.stage
    bar.phase, bar.stage = "waiting", target
    try:
        yield
    finally:
        bar.phase, bar.stage = before


def expect(amount: int, unit: str) -> None:
    """Add to the amount to do in the open task. Without a task, or if the task has another unit, nothing happens."""
    bar = _open_bar(unit)
    bar.total = (bar.total or 0) + amount


def advance(amount: int, unit: str) -> None:
    """Add to the amount done in the open task, see `expect`."""
    _open_bar(unit).done += amount


def raise_done_to(amount: int, unit: str) -> None:
    """Raise the amount done in the open task to this value, see `expect`."""
    bar = _open_bar(unit)
    bar.done = max(bar.done, amount)


def _open_bar(unit: str) -> Bar:
    bar = _current_bar.get()
    return bar if bar is not None and bar.unit == unit else Bar("")  # a bar that is never shown
