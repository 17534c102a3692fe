"""Runs on Ray that test what an actor does before the first row."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, tiny, write_job
from tests.raises import fails

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_ray_session")]


def test_weights_that_cannot_be_loaded_are_one_error_message(tiny_model: str, tmp_path: Path) -> None:
    """An error in an actor reaches the user unchanged; nothing is scored."""
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    (model / "model.safetensors").write_bytes(b"no weights")
    write_logs(tmp_path / "a.parquet", example_rows(3))
    config = write_job(tmp_path / "job.yaml", members={"slms": [tiny(str(model))]})
    done = invoke("run", tmp_path / "a.parquet", tmp_path / "out", "--config", config)
    fails(done, "model.engine-cannot-load")
    assert "UDF" not in done.stderr
    assert manifest(tmp_path / "out")["files"][0]["state"] == "pending"


def test_plan_runs_a_trial_of_the_engine(tiny_model: str, tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "a.parquet", example_rows(20))
    command = ("plan", logs, "--config", write_job(tmp_path / "job.yaml", members={"slms": [tiny(tiny_model)]}))
    done = invoke(*command, "--seconds", "300")
    assert done.returncode == 0 and "on this machine" in done.stdout and "tokens/s" in done.stdout, done.stdout + done.stderr
    done = invoke(*command, "--seconds", "0.01")
    assert done.returncode == 0 and "gave no answer within 0.01 s" in done.stdout, done.stdout + done.stderr
    assert "on this machine" not in done.stdout and "to compute" in done.stdout
