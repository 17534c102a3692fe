import subprocess
import sys

import pytest

from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.runtime.engine_packages import require_engines
from ragassay.pipeline.engines import packages
from ragassay.pipeline.engines.config import ENGINE_CLASSES
from ragassay.pipeline.engines.packages import is_installed, require_packages
from ragassay.pipeline.slm.config import Slm
from tests.raises import raises


def test_a_package_is_found_without_importing_it() -> None:
    check = "import sys; from ragassay.pipeline.engines.packages import is_installed; "
    code = f"{check}assert is_installed('torch') and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_without_code_is_no_package(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_installed("no_such_package_at_all")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "an_empty_folder").mkdir()  # type: ignore[operator]
    assert not is_installed("an_empty_folder")


def test_the_error_names_the_package_its_owner_and_the_remedy() -> None:
    with raises("model.package-missing") as error:
        require_packages(["numpy", "no_such_package"], "Model 'facts'")
    text = str(error.value)
    assert text.startswith('no_such_package is missing: pip install "ragassay[cpu]"') and "Model 'facts' needs" in text


def test_every_local_engine_names_its_packages() -> None:
    assert {kind.model_fields["kind"].default: kind.PACKAGES for kind in ENGINE_CLASSES} == {
        "vllm": ("vllm", "torch", "transformers"),
        "transformers": ("torch", "transformers"),
        "server": (),
    }


def test_the_driver_of_a_cluster_needs_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda module: module != "vllm")
    slm = Slm(name="facts")
    with raises("model.package-missing"):
        require_engines(RuntimeConfig(), [slm])
    require_engines(RuntimeConfig(ray_address="auto"), [slm])
    require_engines(RuntimeConfig(), [Slm.model_validate({"name": "facts", "engine": "transformers"})])
