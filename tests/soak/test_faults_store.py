"""An object store on a bad day, as input and as output: errors, lost answers, dropped connections, slow bodies."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import OBJECT_STORE
from tests.soak.fault_runs import Tries, content, finished, ids, often, same, two_days, without_slm
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
AGAIN = 10
"""The same command so often at most: a run may end where a store gives way too often, and goes on then."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3_store() as server:
        yield server


@pytest.mark.parametrize("kind", WEATHERS)
def test_rows_are_whole_and_once(store: Store, tmp_path: Path, kind: str) -> None:
    logs, job = two_days(tmp_path, ROWS), without_slm(tmp_path)
    assert finished("run", logs, tmp_path / "out", "--config", job).returncode == 0
    wanted = content(tmp_path / "out")
    for path in logs.rglob("*.parquet"):
        store.client().upload_file(str(path), BUCKET, f"logs/{path.relative_to(logs)}")
    weather = WEATHERS[kind]
    tries = Tries(f"S3 as input and output: {kind}")
    commands = 0
    for seed in range(often(2)):
        store.weather = Weather(weather.errors, weather.dropped, weather.unanswered, weather.slow, seed=seed)
        place = f"{kind}{seed}".replace(" ", "-")
        well = False
        for _ in range(AGAIN):
            commands += 1
            done = finished("run", store.uri("logs"), store.uri(f"{place}/out"), "--config", job, **OBJECT_STORE)
            well = done.returncode == 0
            if well:
                break
            said = ("error[store.", "error[output.", "error[input.", "error[path.")
            assert done.stderr.startswith(said), done.stderr
        seen = store.weather.seen
        tries.notes.append(f"{seen.total() - seen['fine']} of {seen.total()} requests")
        store.weather = Weather()
        rows = pq.read_table(f"{BUCKET}/{place}/out/scored", filesystem=store.fs).to_pylist()
        found = {row["row_id"]: {name: value for name, value in row.items() if name not in ("run_id", "dt")} for row in rows}
        plain = {row_id: {name: value for name, value in row.items() if name != "dt"} for row_id, row in wanted.items()}
        equal = found.keys() == plain.keys() and all(same(found[row_id], row) for row_id, row in plain.items())
        tries.count(ids(ROWS), [row["row_id"] for row in rows], well=well and equal)
    tries.done(f"{commands} commands for {tries.tried} runs, the seed is the number of the run")
