"""End this process if its work hangs: a thread can't be ended, and a hung engine never returns."""

import faulthandler
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

GRACE_SECONDS = 10
"""Time that a hung process has to report why it ends, before it is killed."""

NOTE_SECONDS = 0.5
"""Minimum time between two notes of answers to the clock."""

EXIT_CODE = 70
"""Exit code of a process that ends because its work hangs."""

CLOCK = """
import os, select, sys
parent, limit, grace = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
timeout = None
while True:
    if select.select([0], [], [], timeout)[0]:
        notes = os.read(0, 65536)
        if not notes:
            break
        timeout = limit if notes.endswith(b"w") else None
    elif os.getppid() != parent:
        break
    else:
        os.write(1, b"!")
        os.close(1)
        has_input = select.select([0], [], [], grace)[0]
        if (not has_input or os.read(0, 65536)) and os.getppid() == parent:
            os.kill(parent, 9)
        break
"""
"""Program of a child process that measures the time. It also works while its parent is stopped or holds Python's lock forever.

It reads `w` (work is in progress, or an answer arrived) and `i` (idle). If nothing arrives in time while work is in progress,
it writes `!`, and kills the parent after the grace time. It ends when its input ends or its parent has ended. The second check
is needed: a fork of the parent can keep the input open, and another process can reuse the parent's number.
"""


class Watchdog:
    """Timer that ends this process if work is in progress and no answer arrives in time."""

    def __init__(self, seconds: float, on_hang: Callable[[], None]) -> None:
        """Start the clock.

        Args:
            seconds: Maximum time without an answer.
            on_hang: Called before the process ends, if Python still runs.
        """
        self._on_hang = on_hang
        self._lock = threading.Lock()
        self._active_blocks = 0
        self._noted_at = 0.0
        command = [sys.executable, "-ISc", CLOCK, str(os.getpid()), str(seconds), str(GRACE_SECONDS)]
        # The clock must not load the libraries that an engine preloads.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._clock = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment)
        threading.Thread(target=self._wait_for_hang, daemon=True).start()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the block: while it runs, work is in progress. Several blocks may run at the same time."""
        with self._lock:
            self._active_blocks += 1
            self._notify_clock()
        try:
            yield
        finally:
            with self._lock:
                self._active_blocks -= 1
                self._notify_clock()

    def note_answer(self) -> None:
        """Note that an answer arrived."""
        if time.monotonic() - self._noted_at > NOTE_SECONDS:
            with self._lock:
                self._notify_clock()

    def stop(self) -> None:
        """Stop the clock."""
        with suppress(OSError):
            if self._clock.stdin is not None:
                self._clock.stdin.close()
        self._clock.wait(GRACE_SECONDS)

    def _notify_clock(self) -> None:
        self._noted_at = time.monotonic()
        with suppress(OSError):  # without a clock the process is never ended
            if self._clock.stdin is not None:
                self._clock.stdin.write(b"w" if self._active_blocks else b"i")

    def _wait_for_hang(self) -> None:
        if self._clock.stdout is not None and self._clock.stdout.read(1):
            with suppress(Exception):  # the process must end even if the log or the board fails
                faulthandler.dump_traceback()  # Ray's log then shows where the work hangs
            with suppress(Exception):
                self._on_hang()
            os._exit(EXIT_CODE)
