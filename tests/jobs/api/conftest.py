"""Rows and jobs of detectors alone, and what a whole run says of them."""

from pathlib import Path
from typing import Any

import pandas  # noqa: F401  (before pyarrow looks whether it is there: the command `check` settles that it is not)
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from ragassay.jobs.config.job import make_job
from ragassay.jobs.run import run_job
from tests.conftest import example_rows
from tests.jobs.conftest import read_rows

DETECTORS = [{"name": name, "kind": name} for name in ("entities", "attribution", "novelty")]
ALONE: dict[str, Any] = {"members": {"slms": [], "detectors": DETECTORS}}

ODD: dict[str, dict[str, Any]] = {
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


def odd_rows() -> list[dict[str, Any]]:
    """Rows of every kind, each with an id that says which, the first word its status."""
    plain = [{**row, "row_id": f"ok {i}"} for i, row in enumerate(example_rows(12))]
    return [*plain, *({**plain[0], **row, "row_id": name} for name, row in ODD.items())]


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"context": pa.list_(pa.string())}
    return pa.table({name: pa.array([row[name] for row in rows], kinds.get(name, pa.string())) for name in rows[0]})


def ran(folder: Path, table: pa.Table, job: dict[str, Any]) -> tuple[Path, list[dict[str, Any]]]:
    """What `ragassay run` says of a table: its output folder, and the rows of `scored/` in the table's order."""
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "table")
    run_job(make_job(job), str(folder / "table"), str(folder / "out"), Console(quiet=True))
    return folder / "out", sorted(read_rows(folder / "out"), key=lambda row: row["row_key"])


def same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], without: tuple[str, ...] = ("run_id",)) -> None:
    """Rows are equal in every column; numbers to a rounding error."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() - set(without) == other.keys() - set(without)
        for name in other.keys() - set(without):
            assert _rounded(one[name]) == _rounded(other[name]), name


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
