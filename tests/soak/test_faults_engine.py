"""Engines that hang, die when they start or in a step, or want more memory than there is."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.jobs.conftest import read_rows, wait_for, write_job
from tests.soak.fault_model import faulty_model, inject
from tests.soak.fault_runs import PATIENCE, Tries, children, finished, ids, launched, two_days

pytestmark = pytest.mark.soak

ROWS = 120
HANG_MINUTES = 1.0
"""Longer than the engine takes to load on a machine that does other work too."""


class Bench:
    """Logs, a job with the faulty model, and where its faults are said."""

    def __init__(self, tiny: str, folder: Path) -> None:
        self.folder = folder
        self.model, self.faults = faulty_model(tiny, folder)
        self.logs = two_days(folder, ROWS)

    def command(self, restarts: int) -> tuple[str | Path, ...]:
        slm = {
            "name": "tiny",
            "model": self.model,
            "trust_remote_code": True,
            "engine": "transformers",
            "dtype": "float32",
            "max_model_len": 1024,
            "replicas": {"hang_minutes": HANG_MINUTES, "restarts": restarts},
        }
        job = write_job(self.folder / "job.yaml", members={"slms": [slm]}, runtime={"block_mib": 0.01})
        return ("run", self.logs, self.folder / "out", "--config", job)

    def rows(self) -> list[str]:
        return [row["row_id"] for row in read_rows(self.folder / "out") if row["status"] == "ok"]


@pytest.fixture
def bench(tiny_model: str, tmp_path: Path) -> Bench:
    return Bench(tiny_model, tmp_path)


@pytest.mark.parametrize(
    ("name", "where", "kind", "times"),
    [
        ("hangs in a step", "step", "hang", 2),
        ("hangs in a step, holding Python's lock", "step", "gil", 1),
        ("hangs when it starts", "start", "hang", 1),
        ("dies when it starts (kill -9)", "start", "kill", 3),
        ("dies in a step (kill -9)", "step", "kill", 5),
    ],
)
def test_what_passes_is_survived(bench: Bench, name: str, where: str, kind: str, times: int) -> None:
    inject(bench.faults, where, kind, times)
    done = finished(*bench.command(restarts=5))
    tries = Tries(f"an engine that {name}")
    assert not list(bench.faults.iterdir())
    tries.count(ids(ROWS), bench.rows(), well=done.returncode == 0)
    tries.done(f"{times} times in one run")


@pytest.mark.parametrize(
    ("name", "where", "kind", "said"),
    [
        ("always hangs", "step", "hang", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*\(replicas.hang_minutes\)"),
        ("always dies when it starts", "start", "kill", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*killed from outside"),
        ("always dies in a step", "step", "kill", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*killed from outside"),
        ("has no memory left by a limit", "step", "limit", r"SLM 'tiny': the engine failed: .*memory.*Lower replicas.max"),
    ],
    ids=["hangs", "dies when it starts", "dies in a step", "no memory"],
)
def test_what_does_not_pass_is_one_error_and_the_command_goes_on(
    bench: Bench, name: str, where: str, kind: str, said: str
) -> None:
    inject(bench.faults, where, kind, 50)
    failed = finished(*bench.command(restarts=1))
    assert failed.returncode == 1 and re.search(said, failed.stderr), failed.stderr
    for left in bench.faults.iterdir():
        left.unlink()
    done = finished(*bench.command(restarts=1))
    tries = Tries(f"an engine that {name}")
    tries.count(ids(ROWS), bench.rows(), well=done.returncode == 0)
    tries.done("one error that names engine and setting; when the fault had gone, the same command went on")


def test_an_engine_that_eats_the_machines_memory(bench: Bench) -> None:
    memory = psutil.virtual_memory()
    share = (memory.total - memory.available + (3 << 30)) / memory.total
    inject(bench.faults, "step", "eat", 50)
    env = {"RAY_memory_usage_threshold": f"{share:.3f}", "RAY_memory_monitor_refresh_ms": "100"}
    failed = finished(*bench.command(restarts=1), **env)
    assert failed.returncode == 1 and re.search(r"tiny: .*memory of its machine was used up", failed.stderr), failed.stderr
    for left in bench.faults.iterdir():
        left.unlink()
    done = finished(*bench.command(restarts=1))
    tries = Tries("an engine that eats the machine's memory")
    tries.count(ids(ROWS), bench.rows(), well=done.returncode == 0)
    tries.done(f"Ray's memory monitor at {share:.0%} ended it twice")


@pytest.mark.parametrize(
    ("name", "signals"), [("is stopped (SIGSTOP)", (signal.SIGSTOP,)), ("is killed from outside", (signal.SIGKILL,) * 3)]
)
def test_a_process_that_is_hit_from_outside(bench: Bench, name: str, signals: tuple[signal.Signals, ...]) -> None:
    log = bench.folder / "run.log"
    run = launched(*bench.command(restarts=5), log=log)
    hit: set[int] = set()
    for number in signals:
        victims: list[psutil.Process] = []
        wait_for(_found(run, hit, victims), run, PATIENCE)
        hit.add(victims[0].pid)
        victims[0].send_signal(number)
    code = run.wait(timeout=PATIENCE)
    tries = Tries(f"an engine that {name}")
    tries.count(ids(ROWS), bench.rows(), well=code == 0)
    tries.done(f"{len(signals)} times in one run")


def _found(run: subprocess.Popen[bytes], hit: set[int], victims: list[psutil.Process]) -> Callable[[], bool]:
    """Whether there is an engine's process that was not hit yet."""

    def look() -> bool:
        new = [one for one in children(run) if one.pid not in hit and "StageActor" in _line(one) and _is_watched(one)]
        victims[:] = new
        return bool(new)

    return look


def _is_watched(process: psutil.Process) -> bool:
    """Whether its clock runs already: who is stopped before that waits for ever."""
    try:
        return any("-ISc" in child.cmdline() for child in process.children())
    except psutil.Error:
        return False


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
