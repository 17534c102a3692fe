"""Rows and jobs for the Python API, and the results of whole runs to compare with."""

from pathlib import Path
from typing import Any

import pandas  # noqa: F401  (before pyarrow looks for it: the command `check` makes pyarrow decide that it is missing)
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from ragassay.jobs.config.job import make_job
from ragassay.jobs.run import run_job
from tests.conftest import example_rows
from tests.jobs.conftest import read_rows

DETECTORS = [{"name": name, "kind": name} for name in ("entities", "attribution", "novelty")]
DETECTOR_JOB: dict[str, Any] = {"members": {"slms": [], "detectors": DETECTORS}}

ODD_ROWS: dict[str, dict[str, Any]] = {
    "no_response": {"response": None},
    "empty_response": {"response": " \n"},
    "no_context": {"context": None},
    "no_context blank": {"context": ["", " "]},
    "ok no question": {"question": None},
    "ok null passage": {"context": [None, "Shop 0 opens at 7 a.m.", ""]},
    "ok one word": {"response": "Seven"},
    "ok long": {"context": ["The shop is open on every day but Sunday. " * 2500]},
    "language_not_measured German": {
        "context": ["Der Laden öffnet um 7 Uhr."],
        "response": "Der Laden öffnet um 8 Uhr. Er schließt um 20 Uhr.",
    },
    "language_not_measured Japanese": {"context": ["店は七時に開きます。"], "response": "店は八時に開きます。"},
    "not_judged": {"response": "It is so."},
    "ok hostile": {"response": "<script>alert(1)</script> \x1b[31mred\x1b[0m Shop 0 opens at 9 a.m."},
}


def make_odd_rows() -> list[dict[str, Any]]:
    """Make rows of every kind; the first word of `row_id` is the expected status."""
    plain_rows = [{**row, "row_id": f"ok {i}"} for i, row in enumerate(example_rows(12))]
    return [*plain_rows, *({**plain_rows[0], **row, "row_id": name} for name, row in ODD_ROWS.items())]


def make_table(rows: list[dict[str, Any]]) -> pa.Table:
    types = {"context": pa.list_(pa.string())}
    return pa.table({name: pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in rows[0]})


def run_table(folder: Path, table: pa.Table, job: dict[str, Any]) -> tuple[Path, list[dict[str, Any]]]:
    """Run a job over a table.

    Returns:
        The output folder, and the rows of `scored/` in the order of the table.
    """
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "table")
    run_job(make_job(job), str(folder / "table"), str(folder / "out"), Console(quiet=True))
    return folder / "out", sorted(read_rows(folder / "out"), key=lambda row: row["row_key"])


def assert_same_rows(
    actual: list[dict[str, Any]], expected: list[dict[str, Any]], ignored: tuple[str, ...] = ("run_id",)
) -> None:
    """Check that rows are equal in every column, numbers up to a rounding error."""
    assert len(actual) == len(expected)
    for actual_row, expected_row in zip(actual, expected, strict=True):
        assert actual_row.keys() - set(ignored) == expected_row.keys() - set(ignored)
        for name in expected_row.keys() - set(ignored):
            assert _round_floats(actual_row[name]) == _round_floats(expected_row[name]), name


def _round_floats(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _round_floats(item) for key, item in value.items()}
    return [_round_floats(item) for item in value] if isinstance(value, list) else value
