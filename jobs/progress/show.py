"""Bars on a terminal, lines elsewhere, or JSON lines on stderr."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ragassay.jobs.progress.bar import Bar, duration
from ragassay.jobs.progress.waits import long_waits

LOOK_SECONDS = 1.0
LINE_SECONDS = 15.0

QUIET_SECONDS = 2.0
"""What takes less is not worth a bar or a line; but who reads JSON learns of every phase."""

Look = Callable[[], Sequence[Bar]]
Say = Callable[[Sequence[Bar]], None]


class LogFormat(StrEnum):
    """What progress looks like."""

    TEXT = "text"
    JSON = "json"


_format = [LogFormat.TEXT]
_open: list[Thread] = []


def log_as(wanted: LogFormat) -> None:
    """From now on show progress so."""
    _format[0] = wanted


@contextmanager
def shown(look: Look, console: Console) -> Iterator[None]:
    """Show how far a block of code is, and what it waits for.

    Args:
        look: Tells how far it is; asked about once a second, and when the block has ended without an error.
        console: Where to; a terminal gets live bars. JSON goes to stderr in any case.
    """
    ended = Event()
    as_json = _format[0] is LogFormat.JSON
    started = time.monotonic()

    def line(bars: Sequence[Bar]) -> None:
        say_line(bars, time.monotonic() - started, console)

    teller = Teller(say_json if as_json else line, 0.0 if as_json else QUIET_SECONDS)
    if as_json:
        with suppress(Exception):  # whatever is wrong with what is shown, the work goes on
            teller.tell(look())
    alive = console.is_terminal and not console.is_dumb_terminal and not as_json
    with_waits: Look = lambda: [*look(), *long_waits()]  # noqa: E731
    work = partial(_live, with_waits, console, ended) if alive else partial(_lines, with_waits, teller, ended)
    thread = Thread(target=work, daemon=True, name="progress")
    thread.start()
    _open.append(thread)
    try:
        yield
    finally:
        _open.remove(thread)
        ended.set()
        thread.join(timeout=10)
    if as_json:
        with suppress(Exception):
            say_json(look())


@contextmanager
def shown_waits() -> Iterator[None]:
    """Show on stderr what a block of code waits for, unless it is part of one that is shown."""
    with nullcontext() if _open else shown(list, Console(stderr=True)):
        yield


class Teller:
    """Tells of bars when a phase changes, and every LINE_SECONDS."""

    def __init__(self, say: Say, quiet: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin.

        Args:
            say: Says it.
            quiet: Seconds that pass before anything is said.
            clock: Seconds.
        """
        self._say, self._clock = say, clock
        self._from = clock() + quiet
        self._said: float | None = None
        self._phases: list[tuple[str, str]] = []

    def tell(self, bars: Sequence[Bar]) -> None:
        """Say it if it is time to."""
        now = self._clock()
        phases = [(bar.stage, bar.phase) for bar in bars]
        due = self._said is None or now - self._said >= LINE_SECONDS or phases != self._phases
        if now >= self._from and due and bars:
            self._said, self._phases = now, phases
            self._say(bars)


def say_line(bars: Sequence[Bar], seconds: float, console: Console) -> None:
    """All bars in one line, and how long they have been there."""
    line = "; ".join(", ".join(filter(None, [bar.title, bar.text])) for bar in bars)
    console.print(f"{line} ({duration(seconds)})", markup=False, highlight=False)


def say_json(bars: Sequence[Bar]) -> None:
    """A JSON object a bar, each on a line of stderr."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print("".join(json_line(bar, now) + "\n" for bar in bars), end="", file=sys.stderr, flush=True)


def json_line(bar: Bar, now: str) -> str:
    """A bar as JSON; null is what is not known.

    Args:
        bar: The bar.
        now: UTC, ISO 8601.
    """
    return json.dumps(
        {
            "time": now,
            "phase": bar.phase,
            "stage": bar.stage,
            "done": bar.done,
            "total": bar.total,
            "unit": bar.unit,
            "about": bar.about,
            "tokens_per_second": _rounded(bar.tokens_per_second),
            "seconds_left": _rounded(bar.seconds_left),
        }
    )


def finished(stage: str, done: int, unit: str) -> None:
    """The last line of a log in JSON: all is done."""
    if _format[0] is LogFormat.JSON:
        say_json([Bar("done", stage, done, done, unit, seconds_left=0.0)])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _lines(look: Look, teller: Teller, ended: Event) -> None:
    while not ended.wait(LOOK_SECONDS):
        with suppress(Exception):  # what is counted may be moved while it is looked at; the next look sees it
            teller.tell(look())


def _live(look: Look, console: Console, ended: Event) -> None:
    if ended.wait(QUIET_SECONDS):
        return
    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        tasks: list[Any] = []
        while True:
            with suppress(Exception):
                draw(progress, tasks, look())
            if ended.wait(LOOK_SECONDS):
                return


def draw(progress: Progress, tasks: list[Any], bars: Sequence[Bar]) -> None:
    """Bring live bars up to date.

    Args:
        progress: Where they are drawn.
        tasks: Its tasks so far, one a bar; those that are missing are added.
        bars: The bars.
    """
    for i, bar in enumerate(bars):
        if i == len(tasks):
            tasks.append(progress.add_task(bar.title, total=None, text=""))
        progress.update(tasks[i], description=bar.title, completed=bar.done, total=bar.total, text=bar.text, visible=True)
    for task in tasks[len(bars) :]:  # of waits that have ended
        progress.update(task, visible=False)
    progress.refresh()
