"""Object stores that do not answer: an error soon, which names the server, and a line about the wait before it."""

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
from ragassay.jobs.storage.object_store import PatientS3, settings_of
from ragassay.pipeline.errors import InputError
from tests.conftest import OBJECT_STORE, free_port
from tests.jobs.conftest import here
from tests.jobs.progress.test_show import terminal
from tests.raises import fails, raises
from tests.soak.fault_store import Weather, s3_store


def nothing_is_known() -> None:
    """Forget which stores answer."""
    contact._reached.clear()
    contact._silent.clear()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything takes a moment, and nothing is known of any store."""
    for name, seconds in {"GIVE_UP_SECONDS": 0.6, "ANSWER_SECONDS": 1.0, "MOST_SECONDS": 30.0, "_PAUSES": (0.1,)}.items():
        monkeypatch.setattr(contact, name, seconds)
    nothing_is_known()
    monkeypatch.setattr(waits, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(show, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(show, "QUIET_SECONDS", 0.0)
    for name, value in OBJECT_STORE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def hole() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"127.0.0.1:{server.getsockname()[1]}"


def uri(server: str, scheme: str = "s3") -> str:
    user = "anonymous" if scheme == "gs" else "key:hushhush"
    region = "" if scheme == "gs" else "&region=us-east-1"
    return f"{scheme}://{user}@bucket/out?scheme=http&endpoint_override={server}{region}"


@pytest.mark.parametrize("kind", ["refused", "silent", "unknown"])
def test_attack_a_store_that_does_not_answer_is_an_error_that_names_it(
    kind: str, hole: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"refused": f"127.0.0.1:{free_port()}", "silent": hole, "unknown": "no-such-host.invalid:9000"}[kind]
    with raises("store.no-answer", host=server, address="s3://bucket/out") as error:
        open_folder(uri(server))
    assert "hushhush" not in str(error.value)
    said = capsys.readouterr()
    assert said.out == "" and f"object store {server}: waiting" in said.err
    capsys.readouterr()
    with pytest.raises(InputError):  # a command opens several folders of one store: it is not asked again at once
        open_folder(uri(server))
    assert capsys.readouterr().err == ""


def test_attack_google_storage_that_does_not_answer_is_an_error(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "MOST_SECONDS", 1.0)  # its client has no limit for an answer
    with raises("store.no-answer", host=hole):
        open_folder(uri(hole, "gs"))


def test_attack_commands_end_where_a_store_does_not_answer(hole: str, tmp_path: Path) -> None:
    for command in (["report", uri(hole)], ["run", uri(hole), tmp_path / "out"], ["plan", uri(hole)]):
        fails(here(*command), "store.no-answer", hole)
    assert not (tmp_path / "out").exists()


def test_a_long_wait_stands_beside_what_a_command_does(hole: str) -> None:
    console, file = terminal()
    console._force_terminal = False
    with task(console, "checking", "logs"), pytest.raises(InputError):
        find_logs(uri(hole))
    assert f"logs: checking; object store {hole}: waiting" in file.getvalue()


def test_a_long_wait_is_json_where_progress_is(hole: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_log_format(LogFormat.JSON)
    try:
        with pytest.raises(InputError):
            open_folder(uri(hole))
    finally:
        set_log_format(LogFormat.TEXT)
    first = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (first["phase"], first["stage"], first["unit"]) == ("waiting", f"object store {hole}", "s")


def test_a_store_that_answers_with_errors_is_there() -> None:
    with s3_store() as store:
        folder = open_folder(store.uri("out"))
        folder.write("a", "text")
        nothing_is_known()
        for weather in (Weather(errors=1.0, seed=1), Weather(unanswered=1.0, seed=1)):
            store.weather = weather
            assert open_folder(store.uri("out")).root == folder.root
            nothing_is_known()
        store.weather = Weather()
        for _ in range(3):
            open_folder(store.uri("out"))
        assert store.weather.seen.total() == 1, "the first contact alone asks"


def test_waits_of_a_store_are_short_for_connections_and_longer_for_answers() -> None:
    store = PatientS3(access_key="a", secret_key="b", region="us-east-1", endpoint_override="127.0.0.1:1")
    assert settings_of(store)["connect_timeout"] == 5 and settings_of(store)["request_timeout"] == 10
    own = PatientS3(access_key="a", secret_key="b", region="us-east-1", connect_timeout=2, request_timeout=90)
    assert settings_of(own)["connect_timeout"] == 2 and settings_of(own)["request_timeout"] == 90
