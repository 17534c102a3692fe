"""Run the command line in a separate process, as a user does, or in this process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from tests.job_settings import merged
from tests.without_ray import without_ray

COMMAND = [sys.executable, "-m", "ragassay"]


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", **extra}


def ragassay(*args: str | Path, env: dict[str, str] | None = None, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process. It must never end with a traceback."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(**(env or {})),
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module", name="without_ray")
def _without_ray() -> Iterator[None]:
    """See `tests.without_ray`."""
    with without_ray():
        yield


def invoke(
    *args: str | Path, stdin: str | bytes | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process. A test whose command starts Ray needs `shared_ray_session`."""
    from ragassay.jobs.cli.main import app

    result = CliRunner(env={"COLUMNS": "200", **(env or {})}).invoke(app, list(map(str, args)), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Traceback" not in result.output, result.output
    return subprocess.CompletedProcess(list(map(str, args)), result.exit_code, result.stdout, result.stderr)


def start(*args: str | Path, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *map(str, args)],
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        env=environment(),
        start_new_session=True,
    )


def wait_for(condition: Any, process: subprocess.Popen[bytes], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the process ended before the fault was injected"
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.02)


def tiny(model: str) -> dict[str, Any]:
    """An SLM that starts fast: the tiny model, in transformers."""
    return {"name": "tiny", "model": model, "engine": "transformers", "dtype": "float32", "max_model_len": 1024}


def write_job(path: Path, *parts: dict[str, Any], **sections: Any) -> Path:
    path.write_text(yaml.safe_dump(merged(*parts, **sections)))
    return path


def resamples(folder: Path, count: int) -> list[str | Path]:
    """Options that set how many bootstrap resamples an evaluation takes."""
    return ["--config", write_job(folder / f"resamples-{count}.yaml", evaluation={"resamples": count})]


def read_rows(output: Path, which: str = "scored") -> list[dict[str, Any]]:
    dataset = ds.dataset(output / which, format="parquet", partitioning="hive", exclude_invalid_files=False)
    rows: list[dict[str, Any]] = dataset.to_table().to_pylist()
    return rows


def read_table(output: Path, which: str) -> pa.Table:
    return ds.dataset(output / which, format="parquet", partitioning="hive").to_table()


def committed_rows(output: Path, checkpoint: str = "_checkpoint") -> int:
    """Count the rows that a plan has committed."""
    files = [path for path in (output / checkpoint).glob("*.parquet") if ".pending." not in path.name]
    return sum(pq.ParquetFile(path).metadata.num_rows for path in files)


def manifest(output: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return data
