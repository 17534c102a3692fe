"""Helpers for tests of tables: create rows, and read an input."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.input import Columns, InputConfig
from ragassay.jobs.input import Logs, check_logs, check_row_ids, find_logs, read_logs
from ragassay.schemas.manifest import Run
from tests.conftest import example_rows

COLUMNS = Columns()


def make_table(first: int, count: int = 6, **more: Any) -> pa.Table:
    rows = example_rows(count, first)
    return pa.Table.from_pylist([{**row, "row_id": f"r{n}", **more} for n, row in enumerate(rows, start=first)])


def load_table(uri: Path | str, runs: list[Run] | None = None, **source: Any) -> Logs:
    logs = find_logs(str(uri), InputConfig.model_validate(source), lambda: runs or [])
    if logs.files:
        check_logs(logs, COLUMNS, True)
        check_row_ids(logs, logs.files, COLUMNS)
    return logs


def read_rows(logs: Logs) -> list[dict[str, Any]]:
    tables = [
        table
        for number, file in enumerate(logs.files)
        for table in read_logs(logs.fs, file, number, range(file.row_groups), COLUMNS, logs.passthrough, False)
    ]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist() if tables else []
    assert len(rows) == sum(file.rows or 0 for file in logs.files)
    return sorted(rows, key=lambda row: int(row["row_id"][1:]))


def read_ids(logs: Logs) -> list[int]:
    return [int(row["row_id"][1:]) for row in read_rows(logs)]


def make_run(logs: Logs, *, ended: bool = True) -> Run:
    return Run("r", "2026-11-01", rows={"in": 1} if ended else {}, source=logs.source)
