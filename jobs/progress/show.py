"""Bars on a terminal, lines elsewhere, or JSON lines on stderr."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import zip_longest
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ragassay.jobs.progress.bar import Bar, Speeds, duration
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
    as_json = _format[0] is LogFormat.JSON
    ended, started, speeds = Event(), time.monotonic(), Speeds()

    def measured() -> list[Bar]:
        return [speeds.measure(bar) for bar in look()]

    def line(bars: Sequence[Bar]) -> None:
        say_line(bars, time.monotonic() - started, console)

    teller = Teller(say_json if as_json else line, 0.0 if as_json else QUIET_SECONDS)
    if as_json:
        with suppress(Exception):  # whatever is wrong with what is shown, the work goes on
            teller.tell(measured())
    alive = console.is_terminal and not console.is_dumb_terminal and not as_json
    with_waits: Look = lambda: [*measured(), *long_waits()]  # noqa: E731
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
        with suppress(Exception):  # as above
            say_json(measured())


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
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        while True:
            with suppress(Exception):  # as in `_lines`
                draw(progress, look())
            if ended.wait(LOOK_SECONDS):
                return


def draw(progress: Progress, bars: Sequence[Bar]) -> None:
    """Bring live bars up to date: a task a bar, in order; those of waits that have ended are hidden."""
    for _ in bars[len(progress.tasks) :]:
        progress.add_task("", total=None, text="")
    for task, bar in zip_longest(progress.tasks, bars):
        if bar is None:
            progress.update(task.id, visible=False)
        else:
            progress.update(task.id, visible=True, description=bar.title, completed=bar.done, total=bar.total, text=bar.text)
    progress.refresh()
