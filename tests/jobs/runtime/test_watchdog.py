"""A process that hangs ends itself; a process that works does not."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ragassay.jobs.runtime import watchdog
from ragassay.jobs.runtime.watchdog import EXIT_CODE, Watchdog

HANGS = """
import ctypes, os, sys, time
from ragassay.jobs.runtime import watchdog
watchdog.GRACE_SECONDS = 1
dog = watchdog.Watchdog(0.5, lambda: print("reported", flush=True))
with dog.watch():
    {}
"""


def run_until_end(hang: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", HANGS.format(hang)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_call_that_never_returns_ends_the_process_and_its_stack_is_logged() -> None:
    code, stdout, stderr = run_until_end("time.sleep(3600)")
    assert (code, stdout) == (EXIT_CODE, "reported\n") and "in <module>" in stderr  # the stack of every thread


@pytest.mark.parametrize("hang", ["ctypes.PyDLL(None).sleep(3600)", "os.kill(os.getpid(), 19)"])
def test_a_process_that_holds_pythons_lock_or_is_stopped_is_killed(hang: str) -> None:
    assert run_until_end(hang)[:2] == (-signal.SIGKILL, "")


FORKS = """
import os
from ragassay.jobs.runtime import watchdog
dog = watchdog.Watchdog(1, lambda: None)
with dog.watch():
    if os.fork():
        os._exit(0)
    print(os.read(dog._clock.stdout.fileno(), 1), flush=True)
    os._exit(0)
"""


def test_the_clock_of_an_ended_process_ends_although_a_fork_keeps_its_input_open() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=120, check=True
    )
    assert (done.stdout, done.stderr) == ("b''\n", "")  # the clock wrote nothing


def test_answers_and_idle_time_do_not_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "NOTE_SECONDS", 0.05)
    events: list[str] = []
    monkeypatch.setattr(os, "_exit", lambda code: events.append(str(code)))
    dog = Watchdog(0.6, lambda: events.append("reported"))
    with dog.watch():
        for _ in range(10):
            time.sleep(0.1)
            dog.note_answer()
    time.sleep(0.8)
    with dog.watch(), dog.watch():
        dog.note_answer()
    time.sleep(0.8)
    dog.stop()
    assert not events
