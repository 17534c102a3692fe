"""Track what a command waits for outside this machine, such as an object store, and show long waits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ragassay.jobs.progress.bar_state import Bar

WAIT_SECONDS = 10.0
"""Minimum length of a wait that is shown."""

_waits: dict[object, tuple[str, float]] = {}


@contextmanager
def track_wait(target: str) -> Iterator[None]:
    """Track a wait while the block runs, so that progress shows it if it takes long.

    Args:
        target: What the block waits for, such as `object store 127.0.0.1:9000`.
    """
    wait = object()
    _waits[wait] = target, time.monotonic()
    try:
        yield
    finally:
        _waits.pop(wait, None)


def find_long_waits() -> list[Bar]:
    """Return a bar for each long wait. Of several waits for the same thing, the longest counts."""
    now = time.monotonic()
    started: dict[str, float] = {}
    for target, start in list(_waits.values()):
        started[target] = min(start, started.get(target, start))
    return [
        Bar("waiting", target, int(now - start), unit="s") for target, start in started.items() if now - start >= WAIT_SECONDS
    ]
