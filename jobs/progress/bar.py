"""How far something is: what is shown of it, how fast it goes, and how long it takes yet."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.progress import Progress, TaskID

from ragassay.jobs.display.address import without_secrets

WINDOW_SECONDS = 300.0
"""Speeds are those of the last minutes: a batch of a slow model may take one of them."""


@dataclass
class Bar:
    """How far one thing is.

    Attributes:
        phase: What is being done, or waited for: checking, loading, warming up, waiting, scoring, deciding, …
        stage: The member, or the part of the work; may be empty.
        done: What is done,
        total: and of how many; None where that is not known.
        unit: What is counted.
        about: Whether these are estimates.
        worked: How much of `done` was done here, which the speed is of; None for all of it.
        tokens: Tokens computed here; None where no model computes.
        tokens_per_second: Their speed; None where that is not known.
        seconds_left: How long it will take; None where that is not known.
    """

    phase: str
    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    about: bool = False
    worked: int | None = None
    tokens: int | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None

    def __post_init__(self) -> None:
        """Whatever is shown of it shows no secret of a URI."""
        for name in ("phase", "stage"):
            setattr(self, name, without_secrets(getattr(self, name)))

    @property
    def title(self) -> str:
        """Its name."""
        return f"{self.stage}: {self.phase}" if self.stage else self.phase

    @property
    def text(self) -> str:
        """All but its name, in words."""
        about = "about " if self.about else ""
        of = f" of {about}{self.total:,}" if self.total is not None else ""
        parts = [f"{self.done:,}{of} {self.unit}"] if self.unit and (of or self.done) else []
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{about}{duration(self.seconds_left)} left")
        return ", ".join(parts)


class Speeds:
    """Speeds of what bars count, and the times that are left; rich measures them."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Begin.

        Args:
            clock: Seconds.
        """
        self._progress = Progress(get_time=clock, speed_estimate_period=WINDOW_SECONDS, disable=True)
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def measure(self, bar: Bar) -> Bar:
        """The bar with its speed and the time that is left, of how it stands now."""
        speed = self._speed(bar.stage, bar.unit, bar.done if bar.worked is None else bar.worked)
        tokens = None if bar.tokens is None else self._speed(bar.stage, "tokens computed", bar.tokens)
        left = None
        if bar.total is not None:
            left = 0.0 if bar.done >= bar.total else (bar.total - bar.done) / speed if speed else None
        return replace(bar, tokens_per_second=tokens, seconds_left=left)

    def _speed(self, stage: str, unit: str, value: int) -> float | None:
        if (stage, unit) not in self._tasks:
            self._tasks[stage, unit] = self._progress.add_task(stage, total=None, completed=value)
        number = self._tasks[stage, unit]
        self._progress.update(number, completed=value)
        return self._progress.tasks[number].speed or None


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
