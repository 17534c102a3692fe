"""A command that writes waits for the holder of the lock, up to a limit."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyarrow import fs as pafs
from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.output import lease, lock
from ragassay.jobs.output.lock import HOLDER_SUFFIX, LOCK, lock_output
from ragassay.jobs.output.manifest import write_manifest
from ragassay.jobs.progress.show import LogFormat, set_log_format
from ragassay.jobs.progress.task import task
from ragassay.jobs.run import commands, score_job
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import OutputError, OutputInUse
from ragassay.schemas.manifest import Manifest
from tests.jobs.conftest import invoke, write_job
from tests.raises import EXAMPLE, fails, raises


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """On a disk the lock is a lock of the operating system; in a store (here without conditional writes) it is a file."""
    monkeypatch.setattr(lease, "CLAIM_SECONDS", 0.0)
    if request.param == "disk":
        return open_folder(str(tmp_path / "out"))
    fs, _ = pafs.FileSystem.from_uri("mock:///")
    return Folder(fs, "out", "mock:///out")


@pytest.fixture
def as_json() -> Iterator[None]:
    set_log_format(LogFormat.JSON)
    yield
    set_log_format(LogFormat.TEXT)


def replace_pauses(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> list[float]:
    """Call a function instead of each pause between two attempts; return the pauses."""
    pauses: list[float] = []

    class Time:
        monotonic = staticmethod(lambda: sum(pauses))

        @staticmethod
        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            do()

    monkeypatch.setattr(lock, "time", Time)
    return pauses


def test_attack_a_writer_waits_until_the_lock_is_free(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: None
) -> None:
    with ExitStack() as other_lock:
        other_lock.enter_context(lock_output(folder, "explain"))
        pauses = replace_pauses(monkeypatch, lambda: other_lock.close() if len(pauses) == 2 else None)
        with lock_output(folder, "run", 600.0, Console(quiet=True)):
            assert len(pauses) == 2
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["phase"] for line in lines} == {"waiting"}
    assert all(f"process {os.getpid()}" in line["stage"] and "`ragassay explain`" in line["stage"] for line in lines)
    assert [folder.read(name) for name in (LOCK, LOCK + HOLDER_SUFFIX)] == [None, None]


def test_attack_a_writer_gives_up_and_names_the_holder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = replace_pauses(monkeypatch, lambda: None)
    with lock_output(folder, "finalize"):
        with pytest.raises(OutputInUse) as error, lock_output(folder, "run", 12.5):
            pass
        assert sum(pauses) == 12.5
        assert f"process {os.getpid()}, `ragassay finalize`, since 20" in error.value.fields["holder"]
        pauses.clear()
        with pytest.raises(OutputInUse), lock_output(folder, "run", 0.0):
            pass
        assert pauses == []


def test_a_wait_is_shown_in_the_current_task(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: None
) -> None:
    quiet = Console(quiet=True)
    with ExitStack() as other_lock, task(quiet, "checking", "logs"):
        other_lock.enter_context(lock_output(folder))
        replace_pauses(monkeypatch, other_lock.close)
        with lock_output(folder, "run", 600.0, quiet):
            pass
    assert {json.loads(line)["phase"] for line in capsys.readouterr().err.splitlines()} == {"checking"}


def test_different_locks_can_be_held_together(folder: Folder) -> None:
    with lock_output(folder, "run"), lock_output(folder, "explain", name="_lock-explain"):
        with pytest.raises(OutputInUse) as error, lock_output(folder, "explain", name="_lock-explain"):
            pass
        assert "`ragassay explain`" in error.value.fields["holder"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_waiting_command_ends_at_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    folder = open_folder(str(tmp_path))
    write_manifest(folder, Manifest())
    with lock_output(folder, "run"):
        pauses = replace_pauses(monkeypatch, lambda: os.kill(os.getpid(), number))
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        try:
            done = invoke("fit", tmp_path)
        finally:
            signal.signal(signal.SIGINT, handler)
        assert done.returncode == code and len(pauses) == 1
        assert folder.read(LOCK) is not None


@pytest.mark.parametrize("command", ["fit", "finalize"])
def test_a_command_without_wait_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    folder = open_folder(str(tmp_path))
    write_manifest(folder, Manifest())
    pauses = replace_pauses(monkeypatch, lambda: None)
    with lock_output(folder, "run"):
        done = invoke(command, tmp_path, "--config", write_job(tmp_path / "job.yaml", runtime={"wait_minutes": 0}))
        fails(done, "output.locked")
        assert not pauses
        assert invoke(command, tmp_path).returncode == 1 and sum(pauses) == 600


def test_a_run_that_waited_reads_its_input_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other run may have read new input meanwhile: a table is read from the end of the latest run."""
    folder = open_folder(str(tmp_path))
    write_manifest(folder, Manifest())
    reads_converted: list[bool] = []

    class Logs:
        source = None

    def read_input(*_: object, converted: bool = False) -> tuple[type[Logs], dict[str, int]]:
        reads_converted.append(converted)
        return Logs, {}

    def stop(*_: object) -> None:
        raise OutputError(EXAMPLE, text="enough")

    monkeypatch.setattr(commands, "_read_input", read_input)
    monkeypatch.setattr(commands, "make_plan", stop)
    console = Console(quiet=True)
    with raises("test.example"):
        score_job(Job(), "in", str(tmp_path), console)
    assert reads_converted == [False]

    def other_run_ends() -> None:
        write_manifest(folder, Manifest(fingerprint={"schema": 1}))
        other_lock.close()

    with ExitStack() as other_lock:
        other_lock.enter_context(lock_output(folder, "run"))
        replace_pauses(monkeypatch, other_run_ends)
        with raises("test.example"):
            score_job(Job(), "in", str(tmp_path), console)
    assert reads_converted == [False, False, True]
