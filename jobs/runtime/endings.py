"""Recognize what ends a run from outside: Ctrl-C, SIGTERM and a full disk."""

import errno
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ragassay.jobs import errors
from ragassay.pipeline.errors import OutputError, RagassayError

DISK_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers of a full disk, an exhausted quota and a file that may not grow."""


class Terminated(KeyboardInterrupt):
    """SIGTERM from a scheduler or from a container that stops: handled as Ctrl-C, with an exit code of its own."""


def find_interruption(error: BaseException) -> KeyboardInterrupt | None:
    """Find Ctrl-C or SIGTERM in an error, its causes and its contexts.

    An own error raised `from None` is not searched further: its message already names the cause.
    """
    visited: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, KeyboardInterrupt):
            return current
        if current is not None and id(current) not in visited:
            visited.add(id(current))
            explains_itself = isinstance(current, RagassayError) and current.__suppress_context__
            pending += [current.__cause__, None if explains_itself else current.__context__]
    return None


def handle_sigterm() -> None:
    """Make SIGTERM end the command as Ctrl-C does. Ray installs its own handler, so call this again after Ray has started."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)


def is_disk_full(error: OSError) -> bool:
    """Return whether the error means that there is no room left to write."""
    return error.errno in DISK_FULL_ERRNOS


def walk_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors behind it: Ray's `cause` of a worker error, `__cause__` or `__context__`."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        yield error
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__


def make_disk_full_error(error: OSError, output: str | None = None) -> OutputError:
    """Make the error for a full disk.

    Args:
        error: The error of the operating system.
        output: Output folder that was being written, if known.
    """
    reason = str(error).partition(": 'Failed to apply UDF")[0]  # Ray's advice does not apply here
    return OutputError(errors.DISK_FULL, output=output, reason=reason, place=f" (OUTPUT is {output})" if output else "")


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def restore_sigterm() -> Iterator[None]:
    """Restore the SIGTERM handler of the caller after the block."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
