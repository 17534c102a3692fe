"""The driver killed at every stage of a run; the same command goes on, and all is as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.addresses import check_addresses, watched
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import (
    COMMAND,
    committed_rows,
    environment,
    here,
    manifest,
    read_rows,
    start,
    wait_for,
    write_job,
)
from tests.raises import fails
from tests.soak.fault_runs import (
    DAYS,
    Tries,
    content,
    end_all,
    finished,
    ids,
    kill_at,
    launched,
    often,
    same,
    two_days,
    without_slm,
)

pytestmark = pytest.mark.soak

ROWS = 600
Moment = Callable[[Path, random.Random], Callable[[], bool]]
"""From the output folder and dice to what becomes true when it has come."""


def begun(output: Path, _: random.Random) -> Callable[[], bool]:
    return (output / "manifest.json").exists


def writing(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any(output.glob("_checkpoint/*.pending.parquet"))


def written(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any(".pending." not in path.name for path in output.glob("_checkpoint/*.parquet"))


def reducing(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any((output / "stats").rglob("*.*"))


def deciding(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any((output / "scored").rglob("*.part")) or any((output / "scored").rglob("*.parquet"))


def between(output: Path, dice: random.Random) -> Callable[[], bool]:
    """After the manifest has been written some times."""
    left, seen = dice.randint(1, 4), [0]

    def now() -> bool:
        path = output / "manifest.json"
        time = path.stat().st_mtime_ns if path.exists() else 0
        if time != seen[-1]:
            seen.append(time)
        return len(seen) > left

    return now


MOMENTS: dict[str, tuple[Moment, float, bool]] = {
    "before the first write": (begun, 3.0, False),
    "in the first write": (writing, 0.03, False),
    "after it": (written, 0.5, False),
    "in the reduce": (reducing, 0.05, True),
    "in finalize": (deciding, 0.05, True),
    "between writes of the manifest": (between, 0.02, False),
}
"""When, how long after it at most, whether all is scored before."""
TIMES = 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, a job, an undisturbed run in `out`, and one that is scored only in `raw only`."""
    folder = tmp_path_factory.mktemp("whole")
    logs, job = two_days(folder, ROWS), without_slm(folder)
    assert finished("run", logs, folder / "out", "--config", job).returncode == 0
    assert finished("score", logs, folder / "raw only", "--config", job).returncode == 0
    return folder


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_killed_driver_costs_nothing(whole: Path, tmp_path: Path, kind: str) -> None:
    moment, jitter, from_raw = MOMENTS[kind]
    times = often(TIMES)
    wanted = content(whole / "out")
    tries = Tries(f"kill -9 of the driver, {kind}")
    dice = random.Random(kind)
    for attempt in range(3 * times):
        output, log = tmp_path / f"out{attempt}", tmp_path / f"{attempt}.log"
        if from_raw:
            shutil.copytree(whole / "raw only", output)
        command = ("run", whole / "logs", output, "--config", whole / "job.yaml")
        run = launched(*command, log=log)
        left = kill_at(run, moment(output, dice), dice.uniform(0, jitter), log)
        if left is not None:  # what it had started lives on while the next one runs, as on a user's machine
            done = finished(*command)
            end_all(left)
            assert done.returncode == 0, done.stderr
            rows = content(output)
            equal = rows.keys() == wanted.keys() and all(same(rows[row_id], row) for row_id, row in wanted.items())
            tries.count(ids(ROWS), [row["row_id"] for row in read_rows(output)], well=equal)
        shutil.rmtree(output)
        if tries.tried == times:
            break
    assert tries.tried == times, "it ended before it could be killed, again and again"
    tries.done(f"at random moments, seed {kind!r}; equal to an undisturbed run")


TOTAL = 1000
"""Rows of the run, of two days."""


def check_killed(slm: dict[str, Any], tmp_path: Path) -> None:
    """Kill the driver, run again, kill the actor: nothing is lost, nothing scored twice, rows stand in order, progress is told.

    Args:
        slm: The one SLM, named `tiny`.
        tmp_path: An empty folder.
    """
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(TOTAL // 2))
    write_logs(tmp_path / "logs" / "dt=2" / "a.parquet", example_rows(TOTAL // 2, start=TOTAL))
    output = tmp_path / "out"
    config = write_job(tmp_path / "job.yaml", members={"slms": [slm]}, runtime={"block_mib": 0.02})
    first = start("run", tmp_path / "logs", output, "--config", config, log=tmp_path / "first.log")
    workers = []
    try:
        wait_for(lambda: committed_rows(output) > 150, first)
        workers = psutil.Process(first.pid).children(recursive=True)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        for worker in workers:  # what the driver started and can no longer end
            if worker.is_running():
                worker.kill()
    psutil.wait_procs(workers, timeout=20)
    saved = committed_rows(output)
    assert 150 < saved < TOTAL
    assert manifest(output)["runs"][-1]["finished"] is None
    write_logs(tmp_path / "other" / "dt=3" / "a.parquet", example_rows(1))
    for args in (("run", tmp_path / "other", output), ("finalize", output)):
        fails(here(*args, "--config", config), "output.unfinished-run")

    second = start("--log-format", "json", "run", tmp_path / "logs", output, "--config", config, log=tmp_path / "second.log")
    wait_for(lambda: committed_rows(output) > saved + 100, second)
    victims = [p for p in psutil.Process(second.pid).children(recursive=True) if "StageActor" in " ".join(p.cmdline())]
    assert len(victims) == 1
    victims[0].kill()
    assert committed_rows(output) < TOTAL
    assert second.wait(timeout=300) == 0, (tmp_path / "second.log").read_text()
    rows = read_rows(output)
    assert {r["status"] for r in rows} == {"ok"}
    assert [r["row_id"] for r in rows] == [f"dt={d}/a.parquet#{i}" for d in (1, 2) for i in range(TOTAL // 2)]  # in order
    run = manifest(output)["runs"][-1]
    assert run["resumed"] == saved and run["rows"]["scored"] == TOTAL
    # Counted: raw files carry the id of the write that made them; the second write made exactly the rest.
    by_write: dict[str, int] = {}
    for file in (output / "raw").rglob("*.parquet"):
        write = file.name.split("_")[0]
        by_write[write] = by_write.get(write, 0) + pq.ParquetFile(file).metadata.num_rows
    assert sorted(by_write.values()) == sorted([saved, TOTAL - saved])
    # Told: from where the first run stopped, up to the last sentence, though what the victim had in hand was done again.
    lines = [json.loads(line) for line in (tmp_path / "second.log").read_text().splitlines() if line.startswith("{")]
    told = [line for line in lines if line["stage"] == "tiny"]
    known = [(line["done"], line["total"]) for line in told if line["total"] is not None]
    assert [done for done, _ in known] == sorted(done for done, _ in known) and all(done <= of for done, of in known)
    assert known[-1][0] == known[-1][1] and known[0][0] > 0
    assert {"loading", "scoring"} <= {line["phase"] for line in told} and any(line["tokens_per_second"] for line in told)
    assert (lines[-1]["phase"], lines[-1]["done"]) == ("done", run["sentences"])


def test_the_driver_and_then_vllm_are_killed(tiny_model: str, tmp_path: Path) -> None:
    check_killed({"name": "tiny", "model": tiny_model, "max_model_len": 1024}, tmp_path)
    tries = Tries("kill -9 of the driver, then of an actor with vLLM")
    tries.count(
        {f"dt={day}/a.parquet#{i}" for day in DAYS for i in range(TOTAL // 2)},
        [row["row_id"] for row in read_rows(tmp_path / "out")],
        well=True,
    )
    tries.done()


def stopped(process: subprocess.Popen[str], output: Path, number: signal.Signals) -> str:
    """Send a signal once rows are committed; gives what was said, which is one line."""
    end = time.monotonic() + 300
    while not list(output.glob("raw/*.parquet")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run(number: signal.Signals, tmp_path: Path) -> None:
    """The same command resumes it, and neither contacts another machine."""
    logs = write_logs(tmp_path / "logs.parquet", example_rows(600), row_group_size=50)
    output = tmp_path / "out"
    detectors = [{"name": "entities", "kind": "entities"}, {"name": "novelty", "kind": "novelty"}]
    job = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": detectors})
    env = environment(**watched(tmp_path))
    arguments = [*COMMAND, "run", str(logs), str(output), "--config", str(job)]
    process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = stopped(process, output, number)
    assert (process.returncode, said) == (128 + number, "stopped; the same command goes on where it stopped\n")
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "600 in = 600 scored" in done.stdout and "resumed" in done.stdout, done.stderr
    check_addresses(tmp_path)
    tries = Tries(f"{number.name} to the driver")
    tries.count({f"logs.parquet#{i}" for i in range(600)}, [row["row_id"] for row in read_rows(output)], well=True)
    tries.done()
