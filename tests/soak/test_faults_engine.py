"""Engines that hang, die at start or in a step, or use too much memory."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.jobs.conftest import read_rows, wait_for, write_job
from tests.soak.fault_model import copy_faulty_model, inject_faults
from tests.soak.fault_runs import PATIENCE, Tries, launch, list_children, list_ids, run_command, write_two_days

pytestmark = pytest.mark.soak

ROWS = 120
HANG_MINUTES = 1.0
"""Longer than the engine takes to load on a machine that does other work too."""


class FaultyJob:
    """Logs, a job with the faulty model, and the folder of its faults."""

    def __init__(self, tiny: str, folder: Path) -> None:
        self.folder = folder
        self.model, self.faults = copy_faulty_model(tiny, folder)
        self.logs = write_two_days(folder, ROWS)

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
        job = write_job(self.folder / "job.yaml", members={"slms": [slm]}, runtime={"block_mib": 0.01, "local_rows": 0})
        return ("run", self.logs, self.folder / "out", "--config", job)

    def rows(self) -> list[str]:
        return [row["row_id"] for row in read_rows(self.folder / "out") if row["status"] == "ok"]


@pytest.fixture
def bench(tiny_model: str, tmp_path: Path) -> FaultyJob:
    return FaultyJob(tiny_model, tmp_path)


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
def test_a_run_survives_temporary_faults(bench: FaultyJob, name: str, where: str, kind: str, times: int) -> None:
    inject_faults(bench.faults, where, kind, times)
    result = run_command(*bench.command(restarts=5))
    tries = Tries(f"an engine that {name}")
    assert not list(bench.faults.iterdir())
    tries.count(list_ids(ROWS), bench.rows(), well=result.returncode == 0)
    tries.done(f"{times} times in one run")


@pytest.mark.parametrize(
    ("name", "where", "kind", "pattern"),
    [
        ("always hangs", "step", "hang", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*\(replicas.hang_minutes\)"),
        ("always dies when it starts", "start", "kill", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*killed from outside"),
        ("always dies in a step", "step", "kill", r"tiny: .*ended 2 times \(replicas.restarts: 1\).*killed from outside"),
        ("has no memory left by a limit", "step", "limit", r"SLM 'tiny': the engine failed: .*memory.*Lower replicas.max"),
    ],
    ids=["hangs", "dies when it starts", "dies in a step", "no memory"],
)
def test_permanent_faults_end_with_one_error_and_the_command_resumes(
    bench: FaultyJob, name: str, where: str, kind: str, pattern: str
) -> None:
    inject_faults(bench.faults, where, kind, 50)
    failed = run_command(*bench.command(restarts=1))
    assert failed.returncode == 1 and re.search(pattern, failed.stderr), failed.stderr
    for fault in bench.faults.iterdir():
        fault.unlink()
    result = run_command(*bench.command(restarts=1))
    tries = Tries(f"an engine that {name}")
    tries.count(list_ids(ROWS), bench.rows(), well=result.returncode == 0)
    tries.done("one error that names engine and setting; once the fault was gone, the same command resumed")


def test_an_engine_that_uses_all_memory_is_ended_by_ray(bench: FaultyJob) -> None:
    memory = psutil.virtual_memory()
    share = (memory.total - memory.available + (3 << 30)) / memory.total
    inject_faults(bench.faults, "step", "eat", 50)
    env = {"RAY_memory_usage_threshold": f"{share:.3f}", "RAY_memory_monitor_refresh_ms": "100"}
    failed = run_command(*bench.command(restarts=1), **env)
    assert failed.returncode == 1 and re.search(r"tiny: .*memory of its machine was used up", failed.stderr), failed.stderr
    for fault in bench.faults.iterdir():
        fault.unlink()
    result = run_command(*bench.command(restarts=1))
    tries = Tries("an engine that eats the machine's memory")
    tries.count(list_ids(ROWS), bench.rows(), well=result.returncode == 0)
    tries.done(f"Ray's memory monitor at {share:.0%} ended it twice")


@pytest.mark.parametrize(
    ("name", "signals"), [("is stopped (SIGSTOP)", (signal.SIGSTOP,)), ("is killed from outside", (signal.SIGKILL,) * 3)]
)
def test_a_run_survives_signals_to_its_engine(bench: FaultyJob, name: str, signals: tuple[signal.Signals, ...]) -> None:
    log = bench.folder / "run.log"
    run = launch(*bench.command(restarts=5), log=log)
    hit: set[int] = set()
    for number in signals:
        victims: list[psutil.Process] = []
        wait_for(_find_victims(run, hit, victims), run, PATIENCE)
        hit.add(victims[0].pid)
        victims[0].send_signal(number)
    code = run.wait(timeout=PATIENCE)
    tries = Tries(f"an engine that {name}")
    tries.count(list_ids(ROWS), bench.rows(), well=code == 0)
    tries.done(f"{len(signals)} times in one run")


def _find_victims(run: subprocess.Popen[bytes], hit: set[int], victims: list[psutil.Process]) -> Callable[[], bool]:
    """Make a function that finds engine processes that got no signal yet, and returns whether there are any."""

    def has_victims() -> bool:
        unhit = [
            process
            for process in list_children(run)
            if process.pid not in hit and "StageActor" in _read_command(process) and _is_watched(process)
        ]
        victims[:] = unhit
        return bool(unhit)

    return has_victims


def _is_watched(process: psutil.Process) -> bool:
    """Return whether the hang timer of an engine process runs; a process stopped before that would wait forever."""
    try:
        return any("-ISc" in child.cmdline() for child in process.children())
    except psutil.Error:
        return False


def _read_command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
