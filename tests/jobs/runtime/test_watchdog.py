"""A process that hangs ends itself, and one that works does not."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ragassay.jobs.runtime import watchdog
from ragassay.jobs.runtime.watchdog import ENDED, Watchdog

HANGS = """
import ctypes, os, sys, time
from ragassay.jobs.runtime import watchdog
watchdog.GRACE_SECONDS = 1
dog = watchdog.Watchdog(0.5, lambda: print("said", flush=True))
with dog.working():
    {}
"""


def ended(hang: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", HANGS.format(hang)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_call_that_never_comes_back_ends_the_process_and_tells_where_it_stood() -> None:
    code, said, log = ended("time.sleep(3600)")
    assert (code, said) == (ENDED, "said\n") and "in <module>" in log  # the stack of every thread


@pytest.mark.parametrize("hang", ["ctypes.PyDLL(None).sleep(3600)", "os.kill(os.getpid(), 19)"])
def test_one_that_holds_pythons_lock_or_is_stopped_is_killed(hang: str) -> None:
    assert ended(hang)[:2] == (-signal.SIGKILL, "")


FORKS = """
import os
from ragassay.jobs.runtime import watchdog
dog = watchdog.Watchdog(1, lambda: None)
with dog.working():
    if os.fork():
        os._exit(0)
    print(os.read(dog._clock.stdout.fileno(), 1), flush=True)
    os._exit(0)
"""


def test_a_clock_whose_process_has_ended_kills_nobody_though_a_fork_holds_its_input() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("b''\n", "")  # it ended without a word


def test_work_that_is_heard_of_and_idle_time_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TOLD_SECONDS", 0.05)
    barks: list[str] = []
    monkeypatch.setattr(os, "_exit", lambda code: barks.append(str(code)))
    dog = Watchdog(0.6, lambda: barks.append("said"))
    with dog.working():
        for _ in range(10):
            time.sleep(0.1)
            dog.heard()
    time.sleep(0.8)
    with dog.working(), dog.working():
        dog.heard()
    time.sleep(0.8)
    dog.stop()
    assert not barks
