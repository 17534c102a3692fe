"""The driver killed at every stage of a run; the same command goes on, and all is as if nothing had happened."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.conftest import read_rows
from tests.jobs.test_killed_run import TOTAL, check_killed
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


def test_the_driver_and_then_vllm_are_killed(tiny_model: str, tmp_path: Path) -> None:
    check_killed({"name": "tiny", "model": tiny_model, "max_model_len": 1024}, tmp_path)
    tries = Tries("kill -9 of the driver, then of an actor with vLLM")
    tries.count(
        {f"dt={day}/a.parquet#{i}" for day in DAYS for i in range(TOTAL // 2)},
        [row["row_id"] for row in read_rows(tmp_path / "out")],
        well=True,
    )
    tries.done()
