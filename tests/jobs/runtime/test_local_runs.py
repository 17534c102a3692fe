"""Runs of a small input in the process of the command, and the tasks that work both there and on Ray."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ragassay.jobs.config.job import make_job
from ragassay.jobs.run import run_job
from ragassay.jobs.runtime import local_dataflow
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.runtime.sink import Sink
from ragassay.jobs.runtime.tasks import is_local, local_session, make_task, share
from ragassay.schemas.manifest import Run
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import read_rows

NOVELTY = {"members": {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}}
QUIET = Console(quiet=True)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for day in (1, 2, 3):
        write_logs(tmp_path / "logs" / f"dt={day}" / "a.parquet", example_rows(10, start=10 * day))
    return tmp_path / "logs"


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not use the Ray of earlier tests."""
    monkeypatch.setattr("ragassay.jobs.runtime.session._is_ray_running", lambda: False)


def run(logs: Path, output: Path, **runtime: object) -> Run:
    return run_job(make_job({**NOVELTY, "runtime": runtime}), str(logs), str(output), QUIET)


def add(*numbers: int) -> int:
    return sum(numbers)


def check_tasks() -> None:
    start = make_task(add, MODEL_FREE_TASK_CPUS)
    both = start(start(1, 2), share(3))
    assert both.result() == 6


def test_tasks_in_this_process_take_tasks_as_arguments() -> None:
    with local_session():
        assert is_local()
        check_tasks()
    assert not is_local()


@pytest.mark.slow
def test_tasks_on_ray_take_tasks_as_arguments(shared_ray_session: None) -> None:
    check_tasks()


def test_a_small_run_imports_no_ray_and_leaves_the_callers_hooks(logs: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from rich.console import Console
from ragassay.jobs.config.job import make_job
from ragassay.jobs.run import finalize_job, fit_job, run_job
job = make_job({NOVELTY!r})
run_job(job, {str(logs)!r}, {str(tmp_path / "out")!r}, Console(quiet=True))
fit_job(job, {str(tmp_path / "out")!r}, Console(quiet=True))
finalize_job(job, {str(tmp_path / "out")!r}, Console(quiet=True))
print({{"ray", "torch", "vllm"}} & sys.modules.keys(), sys.excepthook is sys.__excepthook__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "set() True\n" and len(read_rows(tmp_path / "out")) == 30


@pytest.mark.parametrize("step", ["keys", "rows", "commit"])
def test_a_killed_run_resumes_with_the_rows_that_are_not_committed(
    step: str, no_ray: None, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends in the second block: before, within or after the write of its rows."""
    write_to_dataset, commit, blocks = pq.write_to_dataset, local_dataflow.commit, list[int]()

    def write_half(block: pa.Table, *arguments: Any, **options: Any) -> None:
        if blocks and step == "keys":
            raise KeyboardInterrupt
        write_to_dataset(block, *arguments, **options)
        if blocks:
            (path,) = (tmp_path / "out" / "raw").glob(f"*/{options['basename_template'].format(i=0)}")
            if step == "rows":
                path.write_bytes(path.read_bytes()[:-20])
            raise KeyboardInterrupt

    def commit_counted(block: pa.Table, sink: Sink, name: str) -> None:
        commit(block, sink, name)
        blocks.append(block.num_rows)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pq, "write_to_dataset", write_half)
        patch.setattr(local_dataflow, "commit", commit_counted)
        run(logs, tmp_path / "out")
    resumed, whole = run(logs, tmp_path / "out"), run(logs, tmp_path / "whole")
    assert blocks == [10] and resumed.rows["scored"] == whole.rows["scored"] == 30
    columns = ("row_key", "score", "verdict", "sentences")
    rows, expected = ([{name: row[name] for name in columns} for row in read_rows(tmp_path / out)] for out in ("out", "whole"))
    assert sorted(rows, key=lambda row: row["row_key"]) == sorted(expected, key=lambda row: row["row_key"])


@pytest.mark.slow
def test_ray_and_this_process_write_the_same_rows(shared_ray_session: None, no_ray: None, logs: Path, tmp_path: Path) -> None:
    run(logs, tmp_path / "ray", local_rows=0)
    run(logs, tmp_path / "local")
    first, second = (
        sorted(({**row, "run_id": ""} for row in read_rows(tmp_path / out)), key=lambda row: row["row_key"])
        for out in ("ray", "local")
    )
    assert first == second and len(first) == 30
