"""The lock of an output folder on an S3 server, behind a proxy that injects faults."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Literal

import pytest
from pyarrow import fs as pafs

from ragassay.jobs.output import lock
from ragassay.jobs.output.lease import ConditionalLease, UnconditionalLease, age_in_store, open_lease
from ragassay.jobs.output.lock import LOCK, lock_output
from ragassay.jobs.runtime.endings import find_interruption
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import OutputError
from tests.conftest import OBJECT_STORE
from tests.raises import raises
from tests.soak.fault_store import Store, Weather, s3_store

OTHER = {"host": "elsewhere", "pid": 7, "claim": "other", "renewed": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with s3_store() as store:
        yield store


@pytest.fixture
def store(server: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in OBJECT_STORE.items():
        monkeypatch.setenv(name, value)
    server.weather = Weather()
    return server


@pytest.fixture
def folder(store: Store, request: pytest.FixtureRequest) -> Folder:
    return open_folder(store.uri(request.node.name.translate(str.maketrans("[ ", "..", "]"))))


def start_together(folder: Folder, runs: int) -> tuple[int, list[str]]:
    """Start runs at once. Return how many get the lock, and the error codes of the others."""
    start, end = threading.Barrier(runs), threading.Barrier(runs)

    def take_lock(_: int) -> str:
        start.wait()
        with ExitStack() as stack:
            try:
                stack.enter_context(lock_output(folder))
            except OutputError as error:
                return error.code
            finally:
                end.wait()  # the lock is held until all have tried
            return "in"

    with ThreadPoolExecutor(runs) as pool:
        results = list(pool.map(take_lock, range(runs)))
    return results.count("in"), [code for code in results if code != "in"]


def test_one_of_several_simultaneous_runs_gets_the_lock(folder: Folder) -> None:
    got_in, refused = start_together(folder, 6)
    assert got_in == 1 and set(refused) == {"output.locked"}
    assert folder.read(LOCK) is None
    with lock_output(folder) as warning:  # and nothing blocks the next run
        assert warning is None and isinstance(open_lease(folder, LOCK), ConditionalLease)


@pytest.mark.parametrize("skew", [0, 3600, -3600])
def test_a_renewed_lock_is_respected_with_any_clock_skew(folder: Folder, store: Store, skew: float) -> None:
    store.weather = Weather(skew=skew)
    folder.write(LOCK, json.dumps(OTHER))
    with raises("output.locked", holder=" (host elsewhere, process 7)"), lock_output(folder):
        pass
    age = age_in_store(folder, LOCK)
    assert age is not None and 0 <= age < 60
    assert json.loads(folder.read(LOCK) or "{}") == OTHER
    assert [info.base_name for info in folder.fs.get_file_info(pafs.FileSelector(folder.root))] == [
        LOCK
    ]  # no temporary file is left


def test_an_expired_lock_is_taken_over_by_one_run(folder: Folder, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.weather = Weather(skew=-3600)
    folder.write(LOCK, json.dumps(OTHER))
    monkeypatch.setattr(lock, "LEASE_SECONDS", 4.0)
    time.sleep(5.1)  # a store reports whole seconds
    assert start_together(folder, 3)[0] == 1


def test_a_claim_with_a_lost_response_is_valid(folder: Folder, store: Store) -> None:
    store.weather = Weather(unanswered=0.3, errors=0.2, seed=5)
    with lock_output(folder):
        store.weather = Weather()
        assert json.loads(folder.read(LOCK) or "{}")["renewed"] == 0
    assert folder.read(LOCK) is None


@pytest.fixture(params=["Ctrl-C is handled", "a shell's background job"])
def sleep_until_interrupted(request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """Sleep for a minute, which the test must interrupt, even if Ctrl-C is ignored."""
    before = signal.getsignal(signal.SIGINT)
    ignored = request.param == "a shell's background job"
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    began = time.monotonic()
    yield lambda: time.sleep(60)
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 60


def test_a_claim_is_renewed_and_a_run_that_lost_it_is_stopped(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, sleep_until_interrupted: Callable[[], None]
) -> None:
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.1)

    def renewed() -> int:
        return int(json.loads(folder.read(LOCK) or "{}").get("renewed", -1))

    with raises("output.lease-lost") as error, lock_output(folder):
        while renewed() < 2:
            time.sleep(0.05)
        folder.write(LOCK, json.dumps(OTHER))
        sleep_until_interrupted()
    assert find_interruption(error.value) is None  # it is not Ctrl-C
    assert json.loads(folder.read(LOCK) or "{}") == OTHER  # and the other claim is untouched


@pytest.mark.parametrize("fault", [OSError, RuntimeError])
def test_a_claim_that_is_not_renewed_within_the_lease_is_lost(
    folder: Folder,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[Exception],
    sleep_until_interrupted: Callable[[], None],
) -> None:
    def unreachable(*_: object) -> None:
        raise fault("the store can't be reached")

    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.5)
    with raises("output.lease-lost"), lock_output(folder):
        monkeypatch.setattr(ConditionalLease, "write", unreachable)
        monkeypatch.setattr(ConditionalLease, "read", unreachable)
        sleep_until_interrupted()


@pytest.mark.parametrize("conditions", ["passed over", "refused"])
def test_a_store_without_conditions_is_detected_and_reported(
    folder: Folder, store: Store, conditions: Literal["passed over", "refused"]
) -> None:
    store.weather = Weather(conditions=conditions)
    with lock_output(folder) as warning:
        assert warning is not None and "schedule one at a time" in warning
        with raises("output.locked"), lock_output(folder):
            pass
    assert folder.read(LOCK) is None


def test_a_store_without_conditional_writes_uses_the_last_put() -> None:
    fs, _ = pafs.FileSystem.from_uri("mock:///")
    folder = Folder(fs, "out", "mock:///out")
    fs.create_dir("out")
    lease = open_lease(folder, LOCK)
    assert isinstance(lease, UnconditionalLease)
    with lock_output(folder) as warning:
        assert warning is not None
        with raises("output.locked"), lock_output(folder):
            pass
    assert lease.read() is None


def test_a_foreign_lock_file_counts_as_in_use(folder: Folder) -> None:
    folder.write(LOCK, "what is this?")
    with raises("output.locked", holder=" (host unknown, process unknown)"), lock_output(folder):
        pass
