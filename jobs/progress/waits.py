"""What a command waits for outside of this machine, such as an object store: shown once it takes long."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ragassay.jobs.progress.bar import Bar

WAIT_SECONDS = 10.0
"""A wait that takes less is not shown."""

_waits: dict[object, tuple[str, float]] = {}


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Let progress show what a block of code waits for, if it takes long.

    Args:
        what: Such as `object store 127.0.0.1:9000`.
    """
    wait = object()
    _waits[wait] = what, time.monotonic()
    try:
        yield
    finally:
        _waits.pop(wait, None)


def long_waits() -> list[Bar]:
    """A bar for each thing that is waited for; of several waits for one thing, the longest."""
    now = time.monotonic()
    since: dict[str, float] = {}
    for what, start in list(_waits.values()):
        since[what] = min(start, since.get(what, start))
    return [Bar("waiting", what, int(now - start), unit="s") for what, start in since.items() if now - start >= WAIT_SECONDS]
