"""A model is checked once a machine, and again whenever what it is made of changes."""

from pathlib import Path

import pytest

from ragassay.pipeline.engines.checked import check_once
from ragassay.pipeline.slm.config import Slm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGASSAY_HOME", str(tmp_path / "home"))
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return model


def checked(slm: Slm) -> bool:
    """Whether it is checked now."""
    calls: list[int] = []
    check_once(slm, lambda: calls.append(1))
    return bool(calls)


def test_the_same_model_is_checked_once(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert checked(slm)
    assert not checked(slm)


def test_another_prompt_is_checked(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert checked(slm)
    assert checked(slm.model_copy(update={"supported": ("True",)}))


def test_another_file_is_checked(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))
    assert checked(slm)
    (folder / "config.json").write_text('{"changed": true}')
    assert checked(slm)


def test_a_fault_is_found_every_time(folder: Path) -> None:
    slm = Slm(name="a", model=str(folder))

    def fail() -> None:
        raise ValueError("no label token")

    for _ in range(2):
        with pytest.raises(ValueError, match="no label token"):
            check_once(slm, fail)
    assert checked(slm)


def test_a_model_of_a_hub_is_checked_every_time(folder: Path) -> None:
    slm = Slm(name="a", model="owner/name")
    assert checked(slm)
    assert checked(slm)


def test_where_nothing_can_be_kept_it_is_checked_every_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGASSAY_HOME", str(folder / "config.json"))  # no folder
    slm = Slm(name="a", model=str(folder))
    assert checked(slm)
    assert checked(slm)
