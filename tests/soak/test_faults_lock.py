"""Two runs at once on one output of an object store: by the lock alone many times, and as whole commands."""

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
from tests.soak.fault_runs import Tries, finished, ids, launched, often, two_days, without_slm
from tests.soak.fault_store import BUCKET, Store, Weather, s3_store

pytestmark = pytest.mark.soak

TRIES = 20
RUNS = 3
STALE = 30.0
"""Seconds after which a lock counts as stale here; all three must have tried within them."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3_store() as server:
        yield server


def contend(uris: list[str], start: Any, end: Any, told: Any, lease: float) -> None:
    """A process that tries one output after the other, each when all are ready, and holds it until all have tried."""
    os.environ.update(OBJECT_STORE)
    from ragassay.jobs.output import lock
    from ragassay.jobs.storage.folder import open_folder
    from ragassay.pipeline.errors import OutputError

    lock.LEASE_SECONDS = lease
    for place, uri in enumerate(uris):
        folder = open_folder(uri)
        start.wait()
        try:
            with lock.lock_output(folder):
                told.put((place, "in"))
                end.wait()
        except OutputError as error:
            told.put((place, str(error)))
            end.wait()


def contended(uris: list[str], lease: float) -> list[list[str]]:
    """What became of RUNS processes at every output."""
    spawn = multiprocessing.get_context("spawn")
    start, end, told = spawn.Barrier(RUNS), spawn.Barrier(RUNS), spawn.Queue()
    runs = [spawn.Process(target=contend, args=(uris, start, end, told, lease)) for _ in range(RUNS)]
    for run in runs:
        run.start()
    found: list[list[str]] = [[] for _ in uris]
    for _ in range(RUNS * len(uris)):
        place, said = told.get(timeout=300)
        found[place].append(said)
    for run in runs:
        run.join(60)
        assert run.exitcode == 0
    return found


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
def test_exactly_one_gets_in(store: Store, name: str, weather: Weather, stale: bool) -> None:
    place = name.replace(" ", "-").replace(",", "").replace("'", "")
    outputs = [f"{place}/{i}" for i in range(TRIES)]
    for output in outputs if stale else []:
        dead = json.dumps({"host": "gone", "pid": 1, "claim": "dead", "renewed": 3})
        store.client().put_object(Bucket=BUCKET, Key=f"{output}/_lock", Body=dead)
    if stale:
        time.sleep(STALE + 1.5)
    store.weather = weather
    found = contended([store.uri(output) for output in outputs], STALE if stale else 600)
    store.weather = Weather()
    tries = Tries(name)
    for said in found:
        refused = [one for one in said if one != "in"]
        tries.tried += 1
        tries.survived += said.count("in") == 1 and all("in use by another run (host" in one for one in refused)
    left = store.client().list_objects_v2(Bucket=BUCKET, Prefix=f"{place}/").get("Contents", [])
    assert not [one["Key"] for one in left if "_lock" in one["Key"]]
    tries.done("exactly one got in; no rows are at stake yet")


@pytest.mark.parametrize("skew", [3600, -3600])
def test_a_living_runs_lock_is_kept_whatever_the_clocks_say(store: Store, skew: float) -> None:
    tries = Tries(f"a living run's lock, the store's clock an hour {'fast' if skew > 0 else 'slow'}")
    store.weather = Weather(skew=skew)
    outputs = [f"living{skew}/{i}" for i in range(TRIES)]
    for output in outputs:
        alive = json.dumps({"host": "here", "pid": 1, "claim": "alive", "renewed": 3})
        store.client().put_object(Bucket=BUCKET, Key=f"{output}/_lock", Body=alive)
    for said in contended([store.uri(output) for output in outputs], 600):
        tries.tried += 1
        tries.survived += all("in use by another run (host here" in one for one in said)
    store.weather = Weather()
    tries.done("nobody got in")


def test_two_whole_runs_at_once_write_every_row_once(store: Store, tmp_path: Path) -> None:
    rows = 200
    logs, job = two_days(tmp_path, rows), without_slm(tmp_path)
    tries = Tries("two whole runs at once on one S3 output")
    for attempt in range(often(3)):
        uri = store.uri(f"whole{attempt}/out")
        both = [
            launched("run", logs, uri, "--config", job, log=tmp_path / f"{attempt}-{i}.log", **OBJECT_STORE) for i in range(2)
        ]
        codes = [run.wait(timeout=900) for run in both]
        said = [(tmp_path / f"{attempt}-{i}.log").read_text() for i in range(2)]
        well = all(code == 0 or "in use by another run" in text for code, text in zip(codes, said, strict=True))
        again = finished("run", logs, uri, "--config", job, **OBJECT_STORE)
        found = pq.read_table(f"{BUCKET}/whole{attempt}/out/scored", filesystem=store.fs)["row_id"].to_pylist()
        tries.count(ids(rows), found, well=well and 0 in codes and again.returncode == 0)
    tries.done()
