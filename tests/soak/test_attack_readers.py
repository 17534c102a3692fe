"""Twenty readers in a loop while runs are started and killed: no run fails, and no reader sees a mix of two runs' verdicts."""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import REPO, example_rows, write_logs
from tests.jobs.conftest import write_job
from tests.soak.fault_runs import DETECTORS, kill_all, launch, list_children, scale_times
from tests.soak.results import Result, record

pytestmark = pytest.mark.soak

READERS = 20
ROUNDS = 3
ROWS = 400
PATIENCE = 600
TAUS = (0.35, 0.65)
"""Thresholds of alternating rounds; all verdicts of a reading have one of them."""


def test_attack_readers_during_runs_that_are_started_and_killed(tmp_path: Path) -> None:
    dice = random.Random(5)
    output, stop, log = tmp_path / "out", tmp_path / "stop", tmp_path / "runs.log"
    jobs = [
        write_job(
            tmp_path / f"job{i}.yaml",
            members={"slms": [], "detectors": DETECTORS},
            runtime={"block_mib": 0.05},
            verdict={"threshold": {"value": tau}},
        )
        for i, tau in enumerate(TAUS)
    ]
    add_day(tmp_path / "logs", 1)
    run_to_end(log, "run", tmp_path / "logs", output, "--config", jobs[0])
    readers = start_readers(tmp_path, output, stop)
    killed = 0
    rounds = scale_times(ROUNDS)
    try:
        for number in range(rounds):
            add_day(tmp_path / "logs", number + 2)
            config = jobs[number % 2]
            killed += kill_at_random(launch("run", tmp_path / "logs", output, "--config", config, log=log), output, dice)
            run_to_end(log, "run", tmp_path / "logs", output, "--config", config)
            killed += kill_at_random(launch("finalize", output, "--config", jobs[(number + 1) % 2], log=log), output, dice)
            run_to_end(log, "finalize", output, "--config", jobs[(number + 1) % 2])
    finally:
        stop.touch()
        codes = [reader.wait(60) for reader in readers]
    assert codes == [0] * READERS, (tmp_path / "readers.log").read_text()
    seen = count_readings(tmp_path)
    note = (
        f"{READERS} readers, {2 * rounds} runs that ended and {killed} that were killed: {seen['whole']:,} whole readings, "
        f"{seen['rewritten']:,} that reported a rewriting run, {seen['mixed']} of half a run"
    )
    record(
        Result("faults", "readers during runs that are made and killed", seen.total(), seen.total() - seen["mixed"], 0, 0, note)
    )
    print(note)
    assert not seen["mixed"] and seen["whole"] > READERS and killed


def add_day(logs: Path, day: int) -> None:
    write_logs(logs / f"dt=2026-11-{day:02d}" / "a.parquet", example_rows(ROWS, start=day * ROWS), row_group_size=100)


def run_to_end(log: Path, *args: str | Path) -> None:
    """Run a command, which must succeed."""
    process = launch(*args, log=log)
    assert process.wait(PATIENCE) == 0, log.read_text()[-3000:]


def kill_at_random(process: Any, output: Path, dice: random.Random) -> bool:
    """Kill a run at a random moment, mostly while it writes verdicts; return whether it was still running."""
    newest_before = get_newest_mtime(output)
    deadline = time.monotonic() + PATIENCE
    while (
        dice.random() < 0.9997
        and get_newest_mtime(output) == newest_before
        and process.poll() is None
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    orphans = list_children(process)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    kill_all(orphans)
    return bool(process.returncode == -signal.SIGKILL)


def get_newest_mtime(output: Path) -> int:
    return max((path.stat().st_mtime_ns for path in (output / "scored").rglob("part-0.parquet")), default=0)


def start_readers(folder: Path, output: Path, stop: Path) -> list[psutil.Popen]:
    log = (folder / "readers.log").open("ab")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    return [
        psutil.Popen(
            [sys.executable, "-m", "tests.soak.output_reader", str(output), str(folder / f"reader{i}.jsonl"), str(stop)],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=REPO,
        )
        for i in range(READERS)
    ]


def count_readings(folder: Path) -> Counter[str]:
    """Count readings by outcome: whole, rewritten, or mixed, which must not occur."""
    seen: Counter[str] = Counter(whole=0, rewritten=0, mixed=0)
    for path in folder.glob("reader*.jsonl"):
        for line in path.read_text().splitlines():
            reading = json.loads(line)
            if "rewritten" in reading:
                seen["rewritten"] += 1
                continue
            parts = reading["partitions"]
            is_consistent = all(len(runs) == len(taus) == 1 and rows == ids == ROWS for _, runs, taus, rows, ids in parts)
            has_known_runs = {run for _, runs, *_ in parts for run in runs} <= set(reading["runs"])
            seen[
                "whole" if parts and is_consistent and has_known_runs and is_in_order(parts, reading["runs"]) else "mixed"
            ] += 1
    return seen


def is_in_order(parts: list[list[Any]], runs: list[str]) -> bool:
    """Return whether the verdicts existed at the same time: those of one `finalize`, and partitions added by later runs."""
    order = [runs.index(part[1][0]) for part in sorted(parts)]
    return order == sorted(order)
