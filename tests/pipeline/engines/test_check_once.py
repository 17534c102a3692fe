"""A model is checked once per machine, and again if its settings or files change."""

from pathlib import Path

import pytest

from ragassay.pipeline.engines.check_once import check_once
from ragassay.pipeline.slm.config import Slm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGASSAY_HOME", str(tmp_path / "home"))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return model


def is_checked(slm: Slm) -> bool:
    """Return whether the model is checked now."""
    calls: list[int] = []
    check_once(slm, lambda: calls.append(1))
    return bool(calls)


def test_the_same_model_is_checked_once(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert is_checked(slm)
    assert not is_checked(slm)


def test_a_model_with_other_settings_is_checked_again(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert is_checked(slm)
    assert is_checked(slm.model_copy(update={"supported": ("True",)}))


def test_a_model_with_a_changed_file_is_checked_again(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert is_checked(slm)
    (folder / "config.json").write_text('{"changed": true}')
    assert is_checked(slm)


def test_a_faulty_model_is_checked_every_time(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))

    def fail() -> None:
        raise ValueError("no label token")

    for _ in range(2):
        with pytest.raises(ValueError, match="no label token"):
            check_once(slm, fail)
    assert is_checked(slm)


def test_a_hub_model_is_checked_every_time(folder: Path) -> None:
    slm = Slm(name="a", model="owner/name")
    assert is_checked(slm)
    assert is_checked(slm)


def test_without_a_writable_cache_a_model_is_checked_every_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGASSAY_HOME", str(folder / "config.json"))  # not a folder
    slm = Slm(name="a", model=str(folder))
    assert is_checked(slm)
    assert is_checked(slm)
