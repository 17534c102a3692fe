"""A piece of work with one bar: whoever does it says how much there is, and how much is done, wherever it stands."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rich.console import Console

from ragassay.jobs.progress.bar import Bar
from ragassay.jobs.progress.show import shown


@dataclass
class Task:
    """A piece of work.

    Attributes:
        phase: What is done: loading, deciding, …
        stage: With what.
        total: How much there is; None where that is not known.
        unit: What is counted.
        done: How much is done.
        tokens: Whether tokens are counted, whose speed is told then.
    """

    phase: str
    stage: str = ""
    total: int | None = None
    unit: str = ""
    done: int = 0
    tokens: bool = False

    @property
    def bar(self) -> Bar:
        """How far it is."""
        done = self.done if self.total is None else min(self.done, self.total)
        return Bar(self.phase, self.stage, done, self.total, self.unit, tokens=self.done if self.tokens else None)


_current: ContextVar[Task | None] = ContextVar("task", default=None)


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
    mine = Task(phase, stage, total, unit, tokens=tokens)

    def look() -> list[Bar]:
        if count is not None:
            mine.done = max(mine.done, count())
        return [mine.bar]

    before = _current.set(mine)
    try:
        with shown(look, console):
            yield
            mine.done = max(mine.done, mine.total or 0)
    finally:
        _current.reset(before)


@contextmanager
def waiting(console: Console, what: str) -> Iterator[None]:
    """Show that the work waits while a block of code does: in the task that is open, or as one of its own.

    Args:
        console: Where to, if no task is open.
        what: For what.
    """
    mine = _current.get()
    if mine is None:
        began = time.monotonic()
        with task(console, "waiting", what, unit="seconds", count=lambda: int(time.monotonic() - began)):
            yield
        return
    before = mine.phase, mine.stage
    mine.phase, mine.stage = "waiting", what
    try:
        yield
    finally:
        mine.phase, mine.stage = before


def expect(amount: int, unit: str) -> None:
    """There is so much more to do in the task that is open; where none is, or it counts something else, this tells nobody."""
    mine = _counts(unit)
    if mine is not None:
        mine.total = (mine.total or 0) + amount


def advance(amount: int, unit: str) -> None:
    """So much more is done in the task that is open; where none is, or it counts something else, this tells nobody."""
    mine = _counts(unit)
    if mine is not None:
        mine.done += amount


def reach(amount: int, unit: str) -> None:
    """So much is done by now in the task that is open; where none is, or it counts something else, this tells nobody."""
    mine = _counts(unit)
    if mine is not None:
        mine.done = max(mine.done, amount)


def _counts(unit: str) -> Task | None:
    mine = _current.get()
    return mine if mine is not None and mine.unit == unit else None
