"""Concurrent runs on one output in an object store: many tries of the lock, and whole commands."""

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import OBJECT_STORE
from tests.soak.fault_runs import Tries, launch, list_ids, run_command, scale_times, write_detector_job, write_two_days
from tests.soak.fault_store import BUCKET, Store, Weather, s3_store

pytestmark = pytest.mark.soak

TRIES = 20
RUNS = 3
STALE = 30.0
"""Seconds after which a lock is stale in these tests; all three processes must try within this time."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3_store() as server:
        yield server


def lock_outputs(uris: list[str], start: Any, end: Any, outcomes: Any, lease: float) -> None:
    """Try to lock each output in turn when all processes are ready, and keep the lock until all have tried."""
    os.environ.update(OBJECT_STORE)
    from ragassay.jobs.output import lock
    from ragassay.jobs.storage.folder import open_folder
    from ragassay.pipeline.errors import OutputError

    lock.LEASE_SECONDS = lease
    for number, uri in enumerate(uris):
        folder = open_folder(uri)
        start.wait()
        try:
            with lock.lock_output(folder):
                outcomes.put((number, "in"))
                end.wait()
        except OutputError as error:
            outcomes.put((number, str(error)))
            end.wait()


def run_contenders(uris: list[str], lease: float) -> list[list[str]]:
    """Let RUNS processes contend for every output; return their outcomes by output."""
    spawn = multiprocessing.get_context("spawn")
    start, end, outcomes = spawn.Barrier(RUNS), spawn.Barrier(RUNS), spawn.Queue()
    runs = [spawn.Process(target=lock_outputs, args=(uris, start, end, outcomes, lease)) for _ in range(RUNS)]
    for run in runs:
        run.start()
    outcomes_by_output: list[list[str]] = [[] for _ in uris]
    for _ in range(RUNS * len(uris)):
        number, outcome = outcomes.get(timeout=300)
        outcomes_by_output[number].append(outcome)
    for run in runs:
        run.join(60)
        assert run.exitcode == 0
    return outcomes_by_output


@pytest.mark.parametrize(
    ("name", "weather", "stale"),
    [
        ("three runs at once on one S3 output", Weather(), False),
        ("three runs at once, answers lost and 503s", Weather(errors=0.1, unanswered=0.1, seed=11), False),
        ("a dead run's lock, three at once", Weather(), True),
        ("a dead run's lock, the store's clock an hour fast", Weather(skew=3600), True),
        ("a dead run's lock, the store's clock an hour slow", Weather(skew=-3600), True),
    ],
)
def test_exactly_one_process_gets_the_lock(store: Store, name: str, weather: Weather, stale: bool) -> None:
    prefix = name.replace(" ", "-").replace(",", "").replace("'", "")
    outputs = [f"{prefix}/{i}" for i in range(TRIES)]
    for output in outputs if stale else []:
        dead = json.dumps({"host": "gone", "pid": 1, "claim": "dead", "renewed": 3})
        store.client().put_object(Bucket=BUCKET, Key=f"{output}/_lock", Body=dead)
    if stale:
        time.sleep(STALE + 1.5)
    store.weather = weather
    outcomes_by_output = run_contenders([store.uri(output) for output in outputs], STALE if stale else 600)
    store.weather = Weather()
    tries = Tries(name)
    for outcomes in outcomes_by_output:
        refused = [outcome for outcome in outcomes if outcome != "in"]
        tries.tried += 1
        tries.survived += outcomes.count("in") == 1 and all("in use by another run (host" in outcome for outcome in refused)
    remaining = store.client().list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/").get("Contents", [])
    assert not [outcome["Key"] for outcome in remaining if "_lock" in outcome["Key"]]
    tries.done("exactly one got in; no rows are at stake yet")


@pytest.mark.parametrize("skew", [3600, -3600])
def test_the_lock_of_a_live_run_is_kept_with_any_clock(store: Store, skew: float) -> None:
    tries = Tries(f"a living run's lock, the store's clock an hour {'fast' if skew > 0 else 'slow'}")
    store.weather = Weather(skew=skew)
    outputs = [f"living{skew}/{i}" for i in range(TRIES)]
    for output in outputs:
        alive = json.dumps({"host": "here", "pid": 1, "claim": "alive", "renewed": 3})
        store.client().put_object(Bucket=BUCKET, Key=f"{output}/_lock", Body=alive)
    for outcomes in run_contenders([store.uri(output) for output in outputs], 600):
        tries.tried += 1
        tries.survived += all("in use by another run (host here" in outcome for outcome in outcomes)
    store.weather = Weather()
    tries.done("nobody got in")


def test_two_concurrent_runs_write_every_row_once(store: Store, tmp_path: Path) -> None:
    rows = 200
    logs, job = write_two_days(tmp_path, rows), write_detector_job(tmp_path)
    tries = Tries("two whole runs at once on one S3 output")
    for attempt in range(scale_times(3)):
        uri = store.uri(f"whole{attempt}/out")
        runs = [
            launch("run", logs, uri, "--config", job, log=tmp_path / f"{attempt}-{i}.log", **OBJECT_STORE) for i in range(2)
        ]
        codes = [run.wait(timeout=900) for run in runs]
        logs_of_runs = [(tmp_path / f"{attempt}-{i}.log").read_text() for i in range(2)]
        well = all(code == 0 or "in use by another run" in text for code, text in zip(codes, logs_of_runs, strict=True))
        again = run_command("run", logs, uri, "--config", job, **OBJECT_STORE)
        row_ids = pq.read_table(f"{BUCKET}/whole{attempt}/out/scored", filesystem=store.fs)["row_id"].to_pylist()
        tries.count(list_ids(rows), row_ids, well=well and 0 in codes and again.returncode == 0)
    tries.done()
