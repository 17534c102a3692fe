"""Unreachable object stores: soon an error that names the server, and before it a line about the wait."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragassay.jobs.input import find_logs
from ragassay.jobs.progress import show, waits
from ragassay.jobs.progress.show import LogFormat, set_log_format
from ragassay.jobs.progress.task import task
from ragassay.jobs.storage import contact
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.storage.store_retries import RetryingS3, file_system_options
from ragassay.pipeline.errors import InputError
from tests.conftest import OBJECT_STORE, free_port
from tests.jobs.conftest import invoke
from tests.jobs.progress.test_show import terminal
from tests.raises import fails, raises
from tests.soak.fault_store import Weather, s3_store


def forget_stores() -> None:
    """Forget which stores are reachable."""
    contact._reachable.clear()
    contact._unreachable.clear()


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all timeouts, and forget all stores."""
    for name, seconds in {"GIVE_UP_SECONDS": 0.6, "ANSWER_SECONDS": 1.0, "MAX_WAIT_SECONDS": 30.0, "_PAUSES": (0.1,)}.items():
        monkeypatch.setattr(contact, name, seconds)
    forget_stores()
    monkeypatch.setattr(waits, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(show, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(show, "QUIET_SECONDS", 0.0)
    for name, value in OBJECT_STORE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never responds."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"127.0.0.1:{server.getsockname()[1]}"


def store_uri(server: str, scheme: str = "s3") -> str:
    user = "anonymous" if scheme == "gs" else "key:hushhush"
    region = "" if scheme == "gs" else "&region=us-east-1"
    return f"{scheme}://{user}@bucket/out?scheme=http&endpoint_override={server}{region}"


@pytest.mark.parametrize("kind", ["refused", "silent", "unknown"])
def test_attack_an_unreachable_store_is_an_error_that_names_it(
    kind: str, silent_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"refused": f"127.0.0.1:{free_port()}", "silent": silent_server, "unknown": "no-such-host.invalid:9000"}[kind]
    with raises("store.no-answer", host=server, address="s3://bucket/out") as error:
        open_folder(store_uri(server))
    assert "hushhush" not in str(error.value)
    output = capsys.readouterr()
    assert output.out == "" and f"object store {server}: waiting" in output.err
    capsys.readouterr()
    with pytest.raises(InputError):  # a command opens several folders of one store: it is not asked again at once
        open_folder(store_uri(server))
    assert capsys.readouterr().err == ""


def test_attack_unreachable_google_storage_is_an_error(silent_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "MAX_WAIT_SECONDS", 1.0)  # its client has no limit for an answer
    with raises("store.no-answer", host=silent_server):
        open_folder(store_uri(silent_server, "gs"))


def test_attack_commands_fail_if_a_store_is_unreachable(silent_server: str, tmp_path: Path) -> None:
    for command in (
        ["report", store_uri(silent_server)],
        ["run", store_uri(silent_server), tmp_path / "out"],
        ["plan", store_uri(silent_server)],
    ):
        fails(invoke(*command), "store.no-answer", silent_server)
    assert not (tmp_path / "out").exists()


def test_a_long_wait_is_shown_with_the_current_task(silent_server: str) -> None:
    console, file = terminal()
    console._force_terminal = False
    with task(console, "checking", "logs"), pytest.raises(InputError):
        find_logs(store_uri(silent_server))
    assert f"logs: checking; object store {silent_server}: waiting" in file.getvalue()


def test_a_long_wait_is_json_if_progress_is(silent_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_log_format(LogFormat.JSON)
    try:
        with pytest.raises(InputError):
            open_folder(store_uri(silent_server))
    finally:
        set_log_format(LogFormat.TEXT)
    first = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (first["phase"], first["stage"], first["unit"]) == ("waiting", f"object store {silent_server}", "s")


def test_a_store_that_responds_with_errors_is_reachable() -> None:
    with s3_store() as store:
        folder = open_folder(store.uri("out"))
        folder.write("a", "text")
        forget_stores()
        for weather in (Weather(errors=1.0, seed=1), Weather(unanswered=1.0, seed=1)):
            store.weather = weather
            assert open_folder(store.uri("out")).root == folder.root
            forget_stores()
        store.weather = Weather()
        for _ in range(3):
            open_folder(store.uri("out"))
        assert store.weather.seen.total() == 1, "the first contact alone asks"


def test_timeouts_are_short_for_connections_and_longer_for_responses() -> None:
    store = RetryingS3(access_key="a", secret_key="b", region="us-east-1", endpoint_override="127.0.0.1:1")
    assert file_system_options(store)["connect_timeout"] == 5 and file_system_options(store)["request_timeout"] == 10
    own = RetryingS3(access_key="a", secret_key="b", region="us-east-1", connect_timeout=2, request_timeout=90)
    assert file_system_options(own)["connect_timeout"] == 2 and file_system_options(own)["request_timeout"] == 90
