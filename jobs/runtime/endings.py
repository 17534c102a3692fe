"""How a run may end from outside: by SIGTERM, and by a disk without room."""

import errno
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ragassay.jobs import errors
from ragassay.pipeline.errors import OutputError, RagassayError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a disk without room, of a user without any left, and of a file that may not grow."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler or a container's end sends it: ended as Ctrl-C is, under an exit code of its own."""


def interruption(error: BaseException) -> KeyboardInterrupt | None:
    """Ctrl-C or SIGTERM behind an error: itself, what it was raised from, or what was being handled when it was raised.

    Behind an error of ours that was raised `from None` there is none: it says itself why the run was stopped.
    """
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if isinstance(one, KeyboardInterrupt):
            return one
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            told = isinstance(one, RagassayError) and one.__suppress_context__
            left += [one.__cause__, None if told else one.__context__]
    return None


def end_at_sigterm() -> None:
    """Have SIGTERM end the command as Ctrl-C does. Ray sets a handler of its own, so this is called again behind it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no room to write."""
    return error.errno in FULL


def behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from, one after the other; Ray names the cause of a worker in its own way."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__


def full_error(error: OSError, output: str | None = None) -> OutputError:
    """The error for a disk without room, and for the output folder that was being written."""
    reason = str(error).partition(": 'Failed to apply UDF")[0]  # Ray's advice is of no use here
    return OutputError(errors.FULL, output=output, reason=reason, place=f" (OUTPUT is {output})" if output else "")


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def sigterm_restored() -> Iterator[None]:
    """Give SIGTERM back to whoever had it before the block."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
