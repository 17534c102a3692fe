"""A faulty object store as input and output: errors, lost answers, dropped connections, slow bodies."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import OBJECT_STORE
from tests.soak.fault_runs import (
    Tries,
    list_ids,
    read_content,
    rows_agree,
    run_command,
    scale_times,
    write_detector_job,
    write_two_days,
)
from tests.soak.fault_store import BUCKET, Store, Weather, s3_store

pytestmark = pytest.mark.soak

ROWS = 200
WEATHERS = {
    "500s and 503 SlowDowns": Weather(errors=0.1),
    "answers lost": Weather(unanswered=0.05),
    "connections dropped in mid-body": Weather(dropped=0.1),
    "slow bodies": Weather(slow=0.1),
    "all of these": Weather(errors=0.05, unanswered=0.03, dropped=0.05, slow=0.05),
}
MOST_COMMANDS = 10
"""Maximum number of commands; a run may fail if the store fails too often, and the same command resumes it."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3_store() as server:
        yield server


@pytest.mark.parametrize("kind", WEATHERS)
def test_every_row_is_complete_and_occurs_once(store: Store, tmp_path: Path, kind: str) -> None:
    logs, job = write_two_days(tmp_path, ROWS), write_detector_job(tmp_path)
    assert run_command("run", logs, tmp_path / "out", "--config", job).returncode == 0
    expected = read_content(tmp_path / "out")
    for path in logs.rglob("*.parquet"):
        store.client().upload_file(str(path), BUCKET, f"logs/{path.relative_to(logs)}")
    weather = WEATHERS[kind]
    tries = Tries(f"S3 as input and output: {kind}")
    commands = 0
    for seed in range(scale_times(2)):
        store.weather = Weather(weather.errors, weather.dropped, weather.unanswered, weather.slow, seed=seed)
        prefix = f"{kind}{seed}".replace(" ", "-")
        well = False
        for _ in range(MOST_COMMANDS):
            commands += 1
            result = run_command("run", store.uri("logs"), store.uri(f"{prefix}/out"), "--config", job, **OBJECT_STORE)
            well = result.returncode == 0
            if well:
                break
            known_errors = ("error[store.", "error[output.", "error[input.", "error[path.")
            assert result.stderr.startswith(known_errors), result.stderr
        seen = store.weather.seen
        tries.notes.append(f"{seen.total() - seen['fine']} of {seen.total()} requests")
        store.weather = Weather()
        rows = pq.read_table(f"{BUCKET}/{prefix}/out/scored", filesystem=store.fs).to_pylist()
        actual = {row["row_id"]: {name: value for name, value in row.items() if name not in ("run_id", "dt")} for row in rows}
        expected_rows = {
            row_id: {name: value for name, value in row.items() if name != "dt"} for row_id, row in expected.items()
        }
        equal = actual.keys() == expected_rows.keys() and all(
            rows_agree(actual[row_id], row) for row_id, row in expected_rows.items()
        )
        tries.count(list_ids(ROWS), [row["row_id"] for row in rows], well=well and equal)
    tries.done(f"{commands} commands for {tries.tried} runs, the seed is the number of the run")
