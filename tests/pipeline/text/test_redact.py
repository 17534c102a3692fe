"""Texts of log rows that go through a function of the user's own."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.pipeline.text.redact import Redaction, redacted
from ragassay.schemas.columns import Status, logs_schema

SCHEMA = logs_schema(pa.schema([]))


@pytest.fixture
def of_many(tmp_path: Path) -> Redaction:
    (tmp_path / "redacts_many.py").write_text(
        "def hide(texts):\n    assert texts and 'explode' not in texts\n    return [text.upper() for text in texts]\n"
    )
    return Redaction("redacts_many:hide", str(tmp_path))


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"status": Status.OK.value, **row, "row_key": i} for i, row in enumerate(rows)], SCHEMA)


def test_what_was_not_to_be_scored_keeps_its_status_where_the_function_raises(of_many: Redaction) -> None:
    bad = {"status": Status.UNREADABLE.value, "error": "no UTF-8"}
    rows = redacted(table({"response": "explode"}, {"response": "explode", **bad}, {"response": "a"}), of_many).to_pylist()
    assert [(row["status"], row["response"]) for row in rows] == [("error", None), ("unreadable", None), ("ok", "A")]
    assert rows[0]["error"].startswith("redact: AssertionError") and rows[1]["error"] == "no UTF-8"


def test_rows_without_any_text_do_not_call_it(of_many: Redaction) -> None:
    without: list[list[dict[str, Any]]] = [[{}], [{"context": [None]}], []]
    for rows in without:
        given = table(*rows)
        assert redacted(given, of_many) == given
