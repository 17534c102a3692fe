import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragassay.pipeline.engines import hub
from ragassay.pipeline.engines.hub import OFFLINE, check_hub
from tests.raises import raises


@pytest.fixture(autouse=True)
def online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFFLINE, "0")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    hub._find_hub_fault.cache_clear()


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setattr(hub, "HUB_SECONDS", 0.5)
        yield address


def test_a_silent_hub_is_reported_in_time(silent_hub: str) -> None:
    started = time.monotonic()
    with raises("model.hub-unreachable") as error:
        check_hub("org/model")
    assert time.monotonic() - started < 5
    assert silent_hub in str(error.value) and "org/model" in str(error.value)
    assert hub.HUB_SECONDS < 10


def test_a_hub_without_an_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with raises("model.hub-unreachable"):
        check_hub("org/model")


def test_a_cached_model_needs_no_hub(silent_hub: str, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--model" / "snapshots" / "1234"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    check_hub("org/model")
    assert os.environ[OFFLINE] == "1"


def test_offline_the_hub_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFFLINE, "1")
    monkeypatch.setattr(hub, "_find_hub_fault", lambda endpoint: pytest.fail("asked"))
    with raises("model.hub-unreachable") as error:
        check_hub("org/model")
    assert OFFLINE in str(error.value)
