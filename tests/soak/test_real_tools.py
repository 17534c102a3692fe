"""Phoenix and MLflow themselves: traces logged with their own SDKs to servers on this machine, exported as their docs say."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from ragassay.jobs.integrations.traces.export import find_export_files
from ragassay.jobs.integrations.traces.stage import TRACES_FOLDER, stage_export
from ragassay.jobs.storage.folder import open_folder
from tests.conftest import free_port
from tests.soak.own_venv import own_venv
from tests.soak.results import Result, record

pytestmark = pytest.mark.soak
COUNT = 1_000
TOOLS = Path(__file__).parent / "tools"


def told() -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{i}", "question": f"When does shop {i} in Köln open?", "response": f"Shop {i} opens at {7 + i % 4} a.m.",
            "passages": None if i % 10 == 9 else [[f"d{i}-{k}", f"Passage {k} of “shop” {i}."] for k in range(i % 4)],
            "session": f"s{i // 3}", "root_says": i % 5 != 2,
        }
        for i in range(COUNT)
    ]  # fmt: skip


def run(script: str, python: Path, *args: str | Path, folder: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    env = {
        **plain,
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    done = subprocess.run([python, TOOLS / script, *args], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def staged(export: Path, output: Path, preset: str) -> list[dict[str, Any]]:
    stage_export(find_export_files(str(export)), open_folder(str(output)), preset, 2, False)
    rows: list[dict[str, Any]] = (
        ds.dataset(output / TRACES_FOLDER, format="parquet", partitioning="hive").to_table().to_pylist()
    )
    return rows


def compared(name: str, rows: list[dict[str, Any]]) -> None:
    wanted = {one["question"]: one for one in told()}
    found = Counter(row["question"] for row in rows)
    right = 0
    for row in rows:
        one = wanted.get(row["question"])
        if one is None:
            continue
        passages = [{"id": key, "text": text} for key, text in one["passages"] or []] or None
        note = "no retrieval" if one["passages"] is None else None if passages else "its retrieval found nothing"
        right += (row["context"], row["response"], row["trace_note"], row["session_id"]) == (
            passages,
            one["response"],
            note,
            one["session"],
        )
    lost, twice = sum(found[q] == 0 for q in wanted), sum(n - 1 for n in found.values())
    record(Result("inputs", name, COUNT, right, lost, twice, "logged with its own SDK, exported as its docs say"))
    assert (lost, twice, right, len(rows)) == (0, 0, COUNT, COUNT), rows[:2]


def test_phoenix(tmp_path: Path) -> None:
    python = own_venv("phoenix", "arize-phoenix==20.26.1") / "python"
    (tmp_path / "told.json").write_text(json.dumps(told()))
    (tmp_path / "export").mkdir()
    ports = (str(free_port()), str(free_port()))
    run("phoenix_export.py", python, tmp_path / "told.json", tmp_path / "export" / "spans.parquet", *ports, folder=tmp_path)
    compared("Phoenix itself", staged(tmp_path / "export", tmp_path / "out", "phoenix"))


def test_mlflow(tmp_path: Path) -> None:
    python = own_venv("mlflow", "mlflow==3.17.2") / "python"
    (tmp_path / "told.json").write_text(json.dumps(told()))
    run("mlflow_export.py", python, tmp_path / "told.json", tmp_path, str(free_port()), folder=tmp_path)
    compared("MLflow itself, JSON Lines", staged(tmp_path / "lines", tmp_path / "one", "mlflow"))
    compared("MLflow itself, Parquet", staged(tmp_path / "parquet", tmp_path / "two", "mlflow"))
