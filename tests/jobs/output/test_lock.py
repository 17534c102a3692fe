"""The lock of an output folder on an object store, on a real S3 server behind a proxy that breaks what passes."""

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
from ragassay.jobs.output.lease import ConditionalPut, LastPut, lease_of, store_age
from ragassay.jobs.output.lock import LOCK, locked
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


def race(folder: Folder, runs: int) -> tuple[int, list[str]]:
    """How many of some runs that start together get in, and the codes of the others' errors."""
    start, end = threading.Barrier(runs), threading.Barrier(runs)

    def one(_: int) -> str:
        start.wait()
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(folder))
            except OutputError as error:
                return error.code
            finally:
                end.wait()  # the lock is held until all have tried
            return "in"

    with ThreadPoolExecutor(runs) as pool:
        found = list(pool.map(one, range(runs)))
    return found.count("in"), [said for said in found if said != "in"]


def test_of_runs_that_start_together_one_gets_in(folder: Folder) -> None:
    got_in, refused = race(folder, 6)
    assert got_in == 1 and set(refused) == {"output.locked"}
    assert folder.read(LOCK) is None
    with locked(folder) as note:  # and what is left of it stands in nobody's way
        assert note is None and isinstance(lease_of(folder, LOCK), ConditionalPut)


@pytest.mark.parametrize("skew", [0, 3600, -3600])
def test_a_living_runs_lock_is_kept_whatever_the_clocks_say(folder: Folder, store: Store, skew: float) -> None:
    store.weather = Weather(skew=skew)
    folder.write(LOCK, json.dumps(OTHER))
    with raises("output.locked", holder=" (host elsewhere, process 7)"), locked(folder):
        pass
    age = store_age(folder, LOCK)
    assert age is not None and 0 <= age < 60
    assert json.loads(folder.read(LOCK) or "{}") == OTHER
    assert [found.base_name for found in folder.fs.get_file_info(pafs.FileSelector(folder.root))] == [LOCK]  # no clock is left


def test_a_dead_runs_lock_is_taken_over_once(folder: Folder, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.weather = Weather(skew=-3600)
    folder.write(LOCK, json.dumps(OTHER))
    monkeypatch.setattr(lock, "LEASE_SECONDS", 4.0)
    time.sleep(5.1)  # a store tells whole seconds
    assert race(folder, 3)[0] == 1


def test_a_claim_whose_answer_is_lost_is_a_claim(folder: Folder, store: Store) -> None:
    store.weather = Weather(unanswered=0.3, errors=0.2, seed=5)
    with locked(folder):
        store.weather = Weather()
        assert json.loads(folder.read(LOCK) or "{}")["renewed"] == 0
    assert folder.read(LOCK) is None


@pytest.fixture(params=["Ctrl-C is heard", "a shell's background job"])
def asleep(request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """A sleep of a minute that is to be cut short, also where Ctrl-C is ignored."""
    before = signal.getsignal(signal.SIGINT)
    ignored = request.param == "a shell's background job"
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    began = time.monotonic()
    yield lambda: time.sleep(60)
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 60


def test_a_claim_is_renewed_and_who_has_lost_it_is_stopped(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, asleep: Callable[[], None]
) -> None:
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.1)

    def renewed() -> int:
        return int(json.loads(folder.read(LOCK) or "{}").get("renewed", -1))

    with raises("output.lease-lost") as told, locked(folder):
        while renewed() < 2:
            time.sleep(0.05)
        folder.write(LOCK, json.dumps(OTHER))
        asleep()
    assert find_interruption(told.value) is None  # it is no Ctrl-C
    assert json.loads(folder.read(LOCK) or "{}") == OTHER  # and leaves the other's alone


@pytest.mark.parametrize("fault", [OSError, RuntimeError])
def test_a_claim_that_cannot_be_renewed_for_the_length_of_a_lease_is_lost(
    folder: Folder, store: Store, monkeypatch: pytest.MonkeyPatch, fault: type[Exception], asleep: Callable[[], None]
) -> None:
    def unreachable(*_: object) -> None:
        raise fault("the store can't be reached")

    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.5)
    with raises("output.lease-lost"), locked(folder):
        monkeypatch.setattr(ConditionalPut, "write", unreachable)
        monkeypatch.setattr(ConditionalPut, "read", unreachable)
        asleep()


@pytest.mark.parametrize("conditions", ["passed over", "refused"])
def test_a_store_that_keeps_no_conditions_is_found_out_and_said(
    folder: Folder, store: Store, conditions: Literal["passed over", "refused"]
) -> None:
    store.weather = Weather(conditions=conditions)
    with locked(folder) as note:
        assert note is not None and "schedule one at a time" in note
        with raises("output.locked"), locked(folder):
            pass
    assert folder.read(LOCK) is None


def test_without_conditions_the_last_put_wins() -> None:
    fs, _ = pafs.FileSystem.from_uri("mock:///")
    folder = Folder(fs, "out", "mock:///out")
    fs.create_dir("out")
    lease = lease_of(folder, LOCK)
    assert isinstance(lease, LastPut)
    with locked(folder) as note:
        assert note is not None
        with raises("output.locked"), locked(folder):
            pass
    assert lease.read() is None


def test_what_is_no_claim_of_ours_is_told_as_in_use(folder: Folder) -> None:
    folder.write(LOCK, "what is this?")
    with raises("output.locked", holder=" (host unknown, process unknown)"), locked(folder):
        pass
