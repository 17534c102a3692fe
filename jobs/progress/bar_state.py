"""Bars: the progress, speed and remaining time of a piece of work."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.progress import Progress, TaskID

from ragassay.jobs.display.address import hide_secrets

WINDOW_SECONDS = 300.0
"""Time over which speeds are measured: a batch of a slow model may take a minute."""


@dataclass
class Bar:
    """Progress of one piece of work.

    Attributes:
        phase: What is being done or waited for: checking, loading, warming up, waiting, scoring, deciding, …
        stage: The member, or the part of the work; may be empty.
        done: Amount done.
        total: Amount to do; None if unknown.
        unit: Unit of the amounts.
        is_estimate: Whether the amounts are estimates.
        done_here: Part of `done` that this command did, from which the speed is measured; None for all of it.
        tokens: Tokens that this command computed; None without a model.
        tokens_per_second: Tokens computed per second; None if unknown.
        seconds_left: Remaining time in seconds; None if unknown.
    """

    phase: str
    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    is_estimate: bool = False
    done_here: int | None = None
    tokens: int | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None

    def __post_init__(self) -> None:
        """Remove the secrets of URIs from the texts."""
        for name in ("phase", "stage"):
            setattr(self, name, hide_secrets(getattr(self, name)))

    @property
    def title(self) -> str:
        """Stage and phase."""
        return f"{self.stage}: {self.phase}" if self.stage else self.phase

    @property
    def text(self) -> str:
        """Amounts, speed and remaining time in words."""
        about = "about " if self.is_estimate else ""
        total = f" of {about}{self.total:,}" if self.total is not None else ""
        parts = [f"{self.done:,}{total} {self.unit}"] if self.unit and (total or self.done) else []
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{about}{format_duration(self.seconds_left)} left")
        return ", ".join(parts)


class SpeedEstimator:
    """Estimator of speeds and remaining times, based on rich."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Start the estimates.

        Args:
            clock: Returns the time in seconds.
        """
        self._progress = Progress(get_time=clock, speed_estimate_period=WINDOW_SECONDS, disable=True)
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def measure(self, bar: Bar) -> Bar:
        """Return the bar with its current speed and remaining time."""
        speed = self._speed(bar.stage, bar.unit, bar.done if bar.done_here is None else bar.done_here)
        token_speed = None if bar.tokens is None else self._speed(bar.stage, "tokens computed", bar.tokens)
        seconds_left = None
        if bar.total is not None:
            seconds_left = 0.0 if bar.done >= bar.total else (bar.total - bar.done) / speed if speed else None
        return replace(bar, tokens_per_second=token_speed, seconds_left=seconds_left)

    def _speed(self, stage: str, unit: str, value: int) -> float | None:
        if (stage, unit) not in self._tasks:
            self._tasks[stage, unit] = self._progress.add_task(stage, total=None, completed=value)
        task_id = self._tasks[stage, unit]
        self._progress.update(task_id, completed=value)
        return self._progress.tasks[task_id].speed or None


def format_duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
