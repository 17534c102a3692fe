"""The driver is killed at every stage of a run; the same command resumes it, and the output equals an undisturbed run's."""

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

from tests.addresses import check_addresses, make_watched_env
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import (
    COMMAND,
    committed_rows,
    environment,
    invoke,
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
    kill_all,
    kill_at,
    launch,
    list_ids,
    read_content,
    rows_agree,
    run_command,
    scale_times,
    write_detector_job,
    write_two_days,
)

pytestmark = pytest.mark.soak

ROWS = 600
Moment = Callable[[Path, random.Random], Callable[[], bool]]
"""Maps the output folder and a random generator to a function that returns whether the moment has come."""


def has_begun(output: Path, _: random.Random) -> Callable[[], bool]:
    return (output / "manifest.json").exists


def is_writing(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any(output.glob("_checkpoint/*.pending.parquet"))


def has_written(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any(".pending." not in path.name for path in output.glob("_checkpoint/*.parquet"))


def is_reducing(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any((output / "stats").rglob("*.*"))


def is_deciding(output: Path, _: random.Random) -> Callable[[], bool]:
    return lambda: any((output / "scored").rglob("*.part")) or any((output / "scored").rglob("*.parquet"))


def has_rewritten_manifest(output: Path, dice: random.Random) -> Callable[[], bool]:
    """Wait until the manifest has been rewritten a random number of times."""
    least, mtimes = dice.randint(1, 4), [0]

    def is_past() -> bool:
        path = output / "manifest.json"
        mtime = path.stat().st_mtime_ns if path.exists() else 0
        if mtime != mtimes[-1]:
            mtimes.append(mtime)
        return len(mtimes) > least

    return is_past


MOMENTS: dict[str, tuple[Moment, float, bool]] = {
    "before the first write": (has_begun, 3.0, False),
    "in the first write": (is_writing, 0.03, False),
    "after it": (has_written, 0.5, False),
    "in the reduce": (is_reducing, 0.05, True),
    "in finalize": (is_deciding, 0.05, True),
    "between writes of the manifest": (has_rewritten_manifest, 0.02, False),
}
"""Name -> moment of the kill, maximum delay after it in seconds, and whether all rows are scored before."""
TIMES = 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with logs, a job, an undisturbed run in `out`, and a run without verdicts in `raw only`."""
    folder = tmp_path_factory.mktemp("whole")
    logs, job = write_two_days(folder, ROWS), write_detector_job(folder)
    assert run_command("run", logs, folder / "out", "--config", job).returncode == 0
    assert run_command("score", logs, folder / "raw only", "--config", job).returncode == 0
    return folder


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_run_with_a_killed_driver_resumes_to_the_same_output(whole: Path, tmp_path: Path, kind: str) -> None:
    moment, jitter, from_raw = MOMENTS[kind]
    times = scale_times(TIMES)
    expected = read_content(whole / "out")
    tries = Tries(f"kill -9 of the driver, {kind}")
    dice = random.Random(kind)
    for attempt in range(3 * times):
        output, log = tmp_path / f"out{attempt}", tmp_path / f"{attempt}.log"
        if from_raw:
            shutil.copytree(whole / "raw only", output)
        command = ("run", whole / "logs", output, "--config", whole / "job.yaml")
        run = launch(*command, log=log)
        orphans = kill_at(run, moment(output, dice), dice.uniform(0, jitter), log)
        if orphans is not None:  # its children live on while the next command runs, as on a user's machine
            result = run_command(*command)
            kill_all(orphans)
            assert result.returncode == 0, result.stderr
            rows = read_content(output)
            equal = rows.keys() == expected.keys() and all(rows_agree(rows[row_id], row) for row_id, row in expected.items())
            tries.count(list_ids(ROWS), [row["row_id"] for row in read_rows(output)], well=equal)
        shutil.rmtree(output)
        if tries.tried == times:
            break
    assert tries.tried == times, "the runs ended before they could be killed"
    tries.done(f"at random moments, seed {kind!r}; equal to an undisturbed run")


TOTAL = 1000
"""Rows of the run over two days."""


def check_kills(slm: dict[str, Any], tmp_path: Path) -> None:
    """Check a run whose driver is killed and, after it is resumed, its actor: rows, their order, and progress.

    Args:
        slm: SLM named `tiny`.
        tmp_path: Empty folder.
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
        for worker in workers:  # children that the driver can no longer end
            if worker.is_running():
                worker.kill()
    psutil.wait_procs(workers, timeout=20)
    committed = committed_rows(output)
    assert 150 < committed < TOTAL
    assert manifest(output)["runs"][-1]["finished"] is None
    write_logs(tmp_path / "other" / "dt=3" / "a.parquet", example_rows(1))
    for args in (("run", tmp_path / "other", output), ("finalize", output)):
        fails(invoke(*args, "--config", config), "output.unfinished-run")

    second = start("--log-format", "json", "run", tmp_path / "logs", output, "--config", config, log=tmp_path / "second.log")
    wait_for(lambda: committed_rows(output) > committed + 100, second)
    victims = [p for p in psutil.Process(second.pid).children(recursive=True) if "StageActor" in " ".join(p.cmdline())]
    assert len(victims) == 1
    victims[0].kill()
    assert committed_rows(output) < TOTAL
    assert second.wait(timeout=300) == 0, (tmp_path / "second.log").read_text()
    rows = read_rows(output)
    assert {r["status"] for r in rows} == {"ok"}
    assert [r["row_id"] for r in rows] == [f"dt={d}/a.parquet#{i + 1}" for d in (1, 2) for i in range(TOTAL // 2)]  # in order
    run = manifest(output)["runs"][-1]
    assert run["resumed"] == committed and run["rows"]["scored"] == TOTAL
    # Names of raw files start with the id of their write; the second write has exactly the remaining rows.
    by_write: dict[str, int] = {}
    for file in (output / "raw").rglob("*.parquet"):
        write = file.name.split("_")[0]
        by_write[write] = by_write.get(write, 0) + pq.ParquetFile(file).metadata.num_rows
    assert sorted(by_write.values()) == sorted([committed, TOTAL - committed])
    # Progress starts where the first run stopped and ends at the last sentence, although the killed actor's block was redone.
    lines = [json.loads(line) for line in (tmp_path / "second.log").read_text().splitlines() if line.startswith("{")]
    slm_lines = [line for line in lines if line["stage"] == "tiny"]
    progress = [(line["done"], line["total"]) for line in slm_lines if line["total"] is not None]
    assert [done for done, _ in progress] == sorted(done for done, _ in progress) and all(done <= of for done, of in progress)
    assert progress[-1][0] == progress[-1][1] and progress[0][0] > 0
    assert {"loading", "scoring"} <= {line["phase"] for line in slm_lines} and any(
        line["tokens_per_second"] for line in slm_lines
    )
    assert (lines[-1]["phase"], lines[-1]["done"]) == ("done", run["sentences"])


def test_the_driver_and_then_vllm_are_killed(tiny_model: str, tmp_path: Path) -> None:
    check_kills({"name": "tiny", "model": tiny_model, "max_model_len": 1024}, tmp_path)
    tries = Tries("kill -9 of the driver, then of an actor with vLLM")
    tries.count(
        {f"dt={day}/a.parquet#{i + 1}" for day in DAYS for i in range(TOTAL // 2)},
        [row["row_id"] for row in read_rows(tmp_path / "out")],
        well=True,
    )
    tries.done()


def signal_run(process: subprocess.Popen[str], output: Path, number: signal.Signals) -> str:
    """Send a signal once rows are committed, and return stderr."""
    deadline = time.monotonic() + 300
    while not list(output.glob("raw/*.parquet")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    return stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_ended_by_a_signal_resumes(number: signal.Signals, tmp_path: Path) -> None:
    """Neither run contacts another machine."""
    logs = write_logs(tmp_path / "logs.parquet", example_rows(600), row_group_size=50)
    output = tmp_path / "out"
    detectors = [{"name": "entities", "kind": "entities"}, {"name": "novelty", "kind": "novelty"}]
    job = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": detectors})
    env = environment(**make_watched_env(tmp_path))
    arguments = [*COMMAND, "run", str(logs), str(output), "--config", str(job)]
    process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    stderr = signal_run(process, output, number)
    assert (process.returncode, stderr) == (128 + number, "stopped; run the same command again to resume\n")
    result = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0 and "600 in = 600 scored" in result.stdout and "resumed" in result.stdout, result.stderr
    check_addresses(tmp_path)
    tries = Tries(f"{number.name} to the driver")
    tries.count({f"logs.parquet#{i + 1}" for i in range(600)}, [row["row_id"] for row in read_rows(output)], well=True)
    tries.done()
