"""How far something is: what is shown of it, how fast it goes, and how long it takes yet."""

from collections import deque
from dataclasses import dataclass

from ragassay.jobs.address import without_secrets

WINDOW_SECONDS = 60.0
"""Speeds are those of the last minute, or of the last leap where that took longer."""


@dataclass(frozen=True)
class Bar:
    """How far one thing is.

    Attributes:
        phase: What is being done, or waited for: checking, loading, warming up, waiting, scoring, deciding, …
        stage: The member, or the part of the work; may be empty.
        done: What is done,
        total: and of how many; None where that is not known.
        unit: What is counted.
        about: Whether these are estimates.
        tokens_per_second: Tokens computed a second; None where no model computes.
        seconds_left: How long it will take; None where that is not known.
    """

    phase: str
    stage: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    about: bool = False
    tokens_per_second: float | None = None
    seconds_left: float | None = None

    def __post_init__(self) -> None:
        """Whatever is shown of it shows no secret of a URI."""
        for name in ("phase", "stage"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

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


class Pace:
    """How fast a number grows in leaps, a batch at a time: the last ones tell how long the next will take."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._leaps: deque[tuple[float, float]] = deque()
        self._now = 0.0

    def start(self, now: float, value: float) -> None:
        """Begin here: what was before does not count."""
        self._leaps = deque([(now, value)])
        self._now = now

    def add(self, now: float, value: float) -> None:
        """The number is so large now.

        Args:
            now: Seconds of a clock that never goes back.
            value: The number.
        """
        self._now = now
        if not self._leaps or value > self._leaps[-1][1]:
            self._leaps.append((now, value))
        while len(self._leaps) > 2 and self._leaps[1][0] <= now - WINDOW_SECONDS:
            self._leaps.popleft()

    @property
    def rate(self) -> float | None:
        """Its growth a second; None where it has not grown. It falls only when a leap takes longer than those before."""
        if len(self._leaps) < 2:
            return None
        (start, first), (_, last) = self._leaps[0], self._leaps[-1]
        seconds = self._now - self._waited - start
        return (last - first) / seconds if seconds > 0 else None

    def seconds_left(self, total: float | None) -> float | None:
        """How long the number will take to a total; None where that, or the rate, is not known."""
        if total is None or not self._leaps:
            return None
        left = total - self._leaps[-1][1]
        if left <= 0:
            return 0.0
        rate = self.rate
        return max(0.0, left / rate - self._waited) if rate else None

    @property
    def _waited(self) -> float:
        """Seconds since the last leap, as far as they were to be expected."""
        (start, _), (end, _) = self._leaps[0], self._leaps[-1]
        return min(self._now - end, (end - start) / max(1, len(self._leaps) - 1))


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
