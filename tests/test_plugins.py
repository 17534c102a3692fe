"""Plug-ins: an installed example package is used through the command line; faults of plug-ins are errors that name them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Literal

import pytest

from ragassay.jobs.config.job import make_job
from ragassay.jobs.input.formats import find_format
from ragassay.jobs.integrations.publish.tools import find_target
from ragassay.jobs.integrations.traces.presets import OTEL, PRESETS, find_preset
from ragassay.pipeline import plugins
from ragassay.pipeline.engines.settings import LocalSettings
from tests.jobs.conftest import environment, write_job
from tests.raises import raises

EXAMPLE = Path(__file__).parent / "plugin_example"
LOGS = """\
Q: When does it open?
C: The shop opens at 7 a.m.
A: The shop opens at 7 a.m.

Q: And on Sunday?
C: Closed.
A: At noon, never.
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed example package, logs in its format, and a job with its detector."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder / "site", folder / "source"], check=True, capture_output=True)
    (folder / "logs").mkdir()
    (folder / "logs/a.qca").write_text(LOGS)
    detectors = [{"name": "share", "kind": "overlap", "min_chars": 2}]
    write_job(folder / "job.yaml", {"members": {"slms": [], "detectors": detectors}})
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that finds the package."""
    env = environment(PYTHONPATH=f"{folder / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", RAY_ADDRESS="local")
    command = [sys.executable, "-m", "ragassay", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_schema_of_a_job_file_has_installed_plugins(folder: Path) -> None:
    schema = json.loads(run(folder, "schema").stdout)
    detector = schema["$defs"]["Overlap"]
    assert detector["properties"]["min_chars"]["description"] == "Shorter words do not count."
    items = schema["$defs"]["MembersConfig"]["properties"]["detectors"]["items"]
    assert items["discriminator"]["mapping"]["overlap"] == "#/$defs/Overlap" and {"$ref": "#/$defs/Overlap"} in items["oneOf"]


def test_a_fault_in_the_settings_of_a_plugin_names_its_key(folder: Path) -> None:
    write_job(folder / "bad.yaml", {"members": {"slms": [], "detectors": [{"name": "x", "kind": "overlap", "min_chars": 0}]}})
    done = run(folder, "plan", "logs", "--config", "bad.yaml")
    assert done.returncode == 1 and "members.detectors.0.min_chars" in " ".join(done.stderr.split()), done.stderr
    write_job(folder / "bad.yaml", {"members": {"slms": [], "detectors": [{"name": "x", "kind": "overlapp"}]}})
    done = run(folder, "plan", "logs", "--config", "bad.yaml")
    assert "'novelty', 'hybrid', 'overlap'" in " ".join(done.stderr.split()), done.stderr


@pytest.mark.slow
def test_a_run_uses_the_detector_and_the_format_of_a_plugin(folder: Path) -> None:
    done = run(folder, "run", "logs", "audit", "--config", "job.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    code = "import ragassay; print(ragassay.open('audit').to_polars().select('row_id', 'members').collect().to_dicts())"
    shown = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout
    rows = {row["row_id"]: row["members"][0] for row in eval(shown)}
    assert rows["a.qca#1"]["name"] == "share" and rows["a.qca#1"]["sentence_scores"] == [1.0]
    assert rows["a.qca#2"]["sentence_scores"] == [0.0]


@pytest.fixture
def install() -> Iterator[Callable[..., None]]:
    """Return a function that adds plug-ins to a group: name -> object reference."""
    patch = pytest.MonkeyPatch()

    def add(group: str, **references: str) -> None:
        entries = {name: EntryPoint(name, value, group) for name, value in references.items()}
        patch.setattr(plugins, "list_plugins", lambda asked: entries if asked == group else {})
        patch.setattr("ragassay.jobs.input.formats.list_plugins", plugins.list_plugins)
        patch.setattr("ragassay.jobs.integrations.publish.tools.list_plugins", plugins.list_plugins)
        patch.setattr("ragassay.jobs.config.input.list_plugins", plugins.list_plugins)

    yield add
    patch.undo()


class ExampleSettings(LocalSettings):
    """Settings of an engine of another package."""

    kind: Literal["example"] = "example"
    port: int


def load_detector(kind: str) -> Any:
    return make_job({"members": {"slms": [], "detectors": [{"name": "x", "kind": kind}]}}).members.detectors[0]


def test_a_plugin_that_cannot_be_used_is_an_error_that_names_it(install: Callable[..., None]) -> None:
    install(plugins.DETECTORS, missing="no_such_module:Detector", wrong="json:dumps", other="tests.test_plugins:EXAMPLE")
    with raises("plugin.broken", name="missing", group="ragassay.detectors"):
        load_detector("missing")
    with raises("plugin.wrong-type", name="wrong", value="json:dumps"):
        load_detector("wrong")
    assert load_detector("novelty").kind == "novelty"
    install(plugins.FORMATS, log="json:dumps")
    with raises("plugin.wrong-type", name="log"):
        find_format("a/b.LOG")
    assert find_format("a/b.parquet") and find_format("a/b.txt") is None


def test_tools_and_engines_can_be_plugins(install: Callable[..., None]) -> None:
    install(plugins.PUBLISHERS, example="json:dumps", langfuse="json:dumps")
    assert find_target("langfuse").name == "langfuse"
    with raises("publish.unknown-tool", tool="none", tools="langfuse, phoenix, mlflow, otel, example"):
        find_target("none")
    with raises("plugin.wrong-type", name="example"):
        find_target("example")
    install(plugins.ENGINES, example="tests.test_plugins:ExampleSettings")
    job = make_job({"members": {"slms": [{"name": "a", "engine": {"kind": "example", "port": 3}}], "detectors": []}})
    (slm,) = job.members.slms
    assert type(slm.engine).__name__ == "ExampleSettings" and slm.engine.model_dump()["port"] == 3
    assert slm.identity()["engine"] == "example"


def test_an_export_of_traces_can_be_a_plugin(install: Callable[..., None]) -> None:
    install(plugins.TRACES, example="ragassay.jobs.integrations.traces.presets:OTEL", wrong="json:dumps")
    preset: Any = make_job({"input": {"preset": "example"}}).input.preset
    assert preset == "example" and find_preset(preset) is OTEL and find_preset("mlflow") is PRESETS["mlflow"]
    with raises("plugin.wrong-type", name="wrong"):
        find_preset("wrong")
    with raises("config.invalid") as caught:
        make_job({"input": {"preset": "exampel"}})
    assert "'otel', 'example' or 'wrong'" in str(caught.value)
