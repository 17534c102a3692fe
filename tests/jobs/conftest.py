"""Run the command line as a user does: in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import yaml

COMMAND = [sys.executable, "-m", "jobs.cli"]


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", **extra}


def ragassay(*args: str | Path, env: dict[str, str] | None = None, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a command; a traceback is never a way to end."""
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


def write_job(path: Path, **job: Any) -> Path:
    path.write_text(yaml.safe_dump(job))
    return path


def read_rows(output: Path, which: str = "scored") -> list[dict[str, Any]]:
    dataset = ds.dataset(output / which, format="parquet", partitioning="hive", exclude_invalid_files=False)
    rows: list[dict[str, Any]] = dataset.to_table().to_pylist()
    return rows


def read_table(output: Path, which: str) -> pa.Table:
    return ds.dataset(output / which, format="parquet", partitioning="hive").to_table()


def manifest(output: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return data
