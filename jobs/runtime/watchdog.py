"""A process that ends itself where its work stands still: a thread can't be ended, and a hung engine never comes back."""

import faulthandler
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

GRACE_SECONDS = 10
"""What a process that hangs has for saying so, before it is killed."""

TOLD_SECONDS = 0.5
"""The clock is told of answers no more often than that."""

ENDED = 70
"""Exit code."""

CLOCK = """
import os, select, sys
parent, limit, grace = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
left = None
while True:
    if select.select([0], [], [], left)[0]:
        said = os.read(0, 65536)
        if not said:
            break
        left = limit if said.endswith(b"w") else None
    elif os.getppid() != parent:
        break
    else:
        os.write(1, b"!")
        os.close(1)
        heard = select.select([0], [], [], grace)[0]
        if (not heard or os.read(0, 65536)) and os.getppid() == parent:
            os.kill(parent, 9)
        break
"""
"""Runs beside the process that it looks after: it counts on while that one is stopped, or holds Python's lock for ever.

It reads `w` (there is work, or an answer came) and `i` (there is none). Where nothing comes for too long while there is work,
it says so, and after that kills. It ends when its input does, or when that process has: one forked of it may hold the input
open, and its number may be another's by then.
"""


class Watchdog:
    """Ends this process where work is under way and nothing is heard of it for too long."""

    def __init__(self, seconds: float, say: Callable[[], None]) -> None:
        """Start the clock.

        Args:
            seconds: How long nothing may be heard.
            say: Called before the process ends, if it still can.
        """
        self._say = say
        self._lock = threading.Lock()
        self._under_way = 0
        self._told = 0.0
        command = [sys.executable, "-ISc", CLOCK, str(os.getpid()), str(seconds), str(GRACE_SECONDS)]
        # Not with the libraries that an engine has preloaded.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._clock = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment)
        threading.Thread(target=self._wait, daemon=True).start()

    @contextmanager
    def working(self) -> Iterator[None]:
        """While the block runs there is work; several may run at once."""
        with self._lock:
            self._under_way += 1
            self._tell()
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._tell()

    def heard(self) -> None:
        """Something was heard of the work."""
        if time.monotonic() - self._told > TOLD_SECONDS:
            with self._lock:
                self._tell()

    def stop(self) -> None:
        """Stop the clock."""
        with suppress(OSError):
            if self._clock.stdin is not None:
                self._clock.stdin.close()
        self._clock.wait(GRACE_SECONDS)

    def _tell(self) -> None:
        self._told = time.monotonic()
        with suppress(OSError):  # no clock, no end
            if self._clock.stdin is not None:
                self._clock.stdin.write(b"w" if self._under_way else b"i")

    def _wait(self) -> None:
        if self._clock.stdout is not None and self._clock.stdout.read(1):
            with suppress(Exception):  # whatever is wrong with the log or the board, the process must end
                faulthandler.dump_traceback()  # into Ray's log: where it hangs
            with suppress(Exception):
                self._say()
            os._exit(ENDED)
