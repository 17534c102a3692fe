"""The tools' own packages read the import files for reviewers."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.conftest import invoke
from tests.jobs.evaluation.conftest import job, labeled_days, write_output
from tests.soak.own_venv import make_venv
from tests.soak.results import REPO, Result, record

pytestmark = pytest.mark.soak

REQUIREMENTS = ("argilla==2.8.0", "label-studio-sdk==2.1.2")
PAGE = REPO / "docs" / "how-to" / "publish.md"

LABEL_STUDIO = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface

config, tasks = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
interface = LabelInterface(config)
faults = []
for task in tasks:
    faults += [] if interface.validate_task({"data": task["data"]}) else [task]
    for prediction in task["predictions"]:
        faults += interface.validate_prediction(prediction, return_errors=True) or []
print(json.dumps([len(tasks), [str(fault) for fault in faults][:5]]))
"""

ARGILLA = """
import json, sys
import argilla as rg
from argilla.records._io._json import JsonIO

records = JsonIO._records_from_json(sys.argv[1])
spans = [len(suggestion.value) for record in records for suggestion in record.suggestions]
models = [record.api_model().model_dump(mode="json") for record in records]
print(json.dumps([len(records), len(spans), models[0]["suggestions"][0], models[0]["external_id"]]))
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output(tmp_path_factory.mktemp("reviewers") / "audit", labeled_days(), job())


def run_script(script: str, *args: str | Path) -> Any:
    python = make_venv("reviewers", *REQUIREMENTS) / "python"
    result = subprocess.run([python, "-c", script, *args], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_label_studio_accepts_tasks_and_predictions(output: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.json"
    assert invoke("export", output, tasks, "--format", "label-studio").returncode == 0
    (tmp_path / "config.xml").write_text(read_labeling_interface())
    count, faults = run_script(LABEL_STUDIO, tmp_path / "config.xml", tasks)
    expected = len(json.loads(tasks.read_text()))
    assert (count, faults) == (expected, []) and expected > 50
    record(Result("publish", "label-studio: its package takes tasks and predictions", expected, count, 0, 0))


def test_argilla_reads_the_records(output: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "records.json"
    assert invoke("export", output, tasks, "--format", "argilla").returncode == 0
    expected = json.loads(tasks.read_text())
    count, suggestions, first, name = run_script(ARGILLA, tasks)
    assert (count, suggestions, name) == (len(expected), len(expected), expected[0]["id"])
    suggestion = expected[0]["suggestions"]["sentences"]
    assert (first["value"], first["agent"]) == (suggestion["value"], suggestion["agent"])
    record(Result("publish", "argilla: its package reads the records", len(expected), count, 0, 0))


def read_labeling_interface() -> str:
    """Read the labeling interface from the how-to page."""
    return PAGE.read_text(encoding="utf-8").partition("```xml\n")[2].partition("```")[0]
