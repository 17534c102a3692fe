"""Show progress: as bars on a terminal, as lines elsewhere, or as JSON lines on stderr."""

import json
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

from ragassay.jobs.display.library_log import get_terminal
from ragassay.jobs.display.live import can_update
from ragassay.jobs.progress.bar_state import Bar, SpeedEstimator, format_duration
from ragassay.jobs.progress.waits import find_long_waits

REFRESH_SECONDS = 1.0
LINE_SECONDS = 15.0

QUIET_SECONDS = 2.0
"""Work that takes less time gets no bar and no line. JSON contains every phase."""

GetBars = Callable[[], Sequence[Bar]]
PrintBars = Callable[[Sequence[Bar]], None]


class LogFormat(StrEnum):
    """Format of progress."""

    TEXT = "text"
    JSON = "json"


_format = [LogFormat.TEXT]
_open_threads: list[Thread] = []


def set_log_format(log_format: LogFormat) -> None:
    """Set the format of progress for this process."""
    _format[0] = log_format


def get_log_format() -> LogFormat:
    """Return the current format of progress."""
    return _format[0]


@contextmanager
def show_progress(get_bars: GetBars, console: Console) -> Iterator[None]:
    """Show the progress of the block, and long waits.

    Args:
        get_bars: Returns the current bars; called about once per second, and after the block if it ends without an error.
        console: Where to show them; a terminal or a notebook gets live bars. JSON always goes to stderr.
    """
    as_json = _format[0] is LogFormat.JSON
    ended, started, speeds = Event(), time.monotonic(), SpeedEstimator()

    def measure() -> list[Bar]:
        return [speeds.measure(bar) for bar in get_bars()]

    def print_as_line(bars: Sequence[Bar]) -> None:
        print_line(bars, time.monotonic() - started, console)

    reporter = LineReporter(print_json if as_json else print_as_line, 0.0 if as_json else QUIET_SECONDS)
    if as_json:
        with suppress(Exception):  # the work must not fail because its progress can't be shown
            reporter.report(measure())
    is_live = can_update(console) and not console.is_dumb_terminal and not as_json
    with_waits: GetBars = lambda: [*measure(), *find_long_waits()]  # noqa: E731
    target = partial(_show_live, with_waits, console, ended) if is_live else partial(_show_lines, with_waits, reporter, ended)
    thread = Thread(target=target, daemon=True, name="progress")
    thread.start()
    _open_threads.append(thread)
    try:
        yield
    finally:
        _open_threads.remove(thread)
        ended.set()
        thread.join(timeout=10)
    if as_json:
        with suppress(Exception):  # as above
            print_json(measure())


@contextmanager
def show_waits() -> Iterator[None]:
    """Show the waits of the block on stderr, unless it is part of a block whose progress is shown."""
    with nullcontext() if _open_threads else show_progress(list, Console(file=get_terminal(), stderr=True)):
        yield


class LineReporter:
    """Reporter of bars: prints them when a phase changes, and every LINE_SECONDS."""

    def __init__(self, print_bars: PrintBars, quiet: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without output.

        Args:
            print_bars: Prints the bars.
            quiet: Seconds without output at the start.
            clock: Returns the time in seconds.
        """
        self._print_bars, self._clock = print_bars, clock
        self._quiet_until = clock() + quiet
        self._printed_at: float | None = None
        self._phases: list[tuple[str, str]] = []

    def report(self, bars: Sequence[Bar]) -> None:
        """Print the bars if they are due."""
        now = self._clock()
        phases = [(bar.stage, bar.phase) for bar in bars]
        is_due = self._printed_at is None or now - self._printed_at >= LINE_SECONDS or phases != self._phases
        if now >= self._quiet_until and is_due and bars:
            self._printed_at, self._phases = now, phases
            self._print_bars(bars)


def print_line(bars: Sequence[Bar], seconds: float, console: Console) -> None:
    """Print all bars in one line.

    Args:
        bars: The bars.
        seconds: Time since they are shown.
        console: Where to print.
    """
    line = "; ".join(", ".join(filter(None, [bar.title, bar.text])) for bar in bars)
    console.print(f"{line} ({format_duration(seconds)})", markup=False, highlight=False)


def print_json(bars: Sequence[Bar]) -> None:
    """Print one JSON object per bar, each on a line of stderr."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print("".join(format_json(bar, now) + "\n" for bar in bars), end="", file=get_terminal(), flush=True)


def format_json(bar: Bar, now: str) -> str:
    """Format a bar as JSON; an unknown value is null.

    Args:
        bar: The bar.
        now: The time: UTC, ISO 8601.
    """
    return json.dumps(
        {
            "time": now,
            "phase": bar.phase,
            "stage": bar.stage,
            "done": bar.done,
            "total": bar.total,
            "unit": bar.unit,
            "is_estimate": bar.is_estimate,
            "tokens_per_second": _rounded(bar.tokens_per_second),
            "seconds_left": _rounded(bar.seconds_left),
        }
    )


def report_finished(stage: str, done: int, unit: str) -> None:
    """Print the last line of a JSON log: all work is done."""
    if _format[0] is LogFormat.JSON:
        print_json([Bar("done", stage, done, done, unit, seconds_left=0.0)])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _show_lines(get_bars: GetBars, reporter: LineReporter, ended: Event) -> None:
    while not ended.wait(REFRESH_SECONDS):
        with suppress(Exception):  # a file that is counted may move meanwhile; the next call finds it
            reporter.report(get_bars())


def _show_live(get_bars: GetBars, console: Console, ended: Event) -> None:
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
            with suppress(Exception):  # as in `_show_lines`
                update_bars(progress, get_bars())
            if ended.wait(REFRESH_SECONDS):
                return


def update_bars(progress: Progress, bars: Sequence[Bar]) -> None:
    """Update live bars: one rich task per bar, in order. Tasks without a bar, such as ended waits, are hidden."""
    for _ in bars[len(progress.tasks) :]:
        progress.add_task("", total=None, text="")
    for task, bar in zip_longest(progress.tasks, bars):
        if bar is None:
            progress.update(task.id, visible=False)
        else:
            progress.update(task.id, visible=True, description=bar.title, completed=bar.done, total=bar.total, text=bar.text)
    progress.refresh()
