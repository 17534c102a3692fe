"""Log texts are redacted by the user's function."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.pipeline.text.redact import Redaction, redact_rows
from ragassay.schemas.columns import Status, logs_schema

SCHEMA = logs_schema(pa.schema([]))


@pytest.fixture
def list_redaction(tmp_path: Path) -> Redaction:
    (tmp_path / "redacts_many.py").write_text(
        "def hide(texts):\n    assert texts and 'explode' not in texts\n    return [text.upper() for text in texts]\n"
    )
    return Redaction("redacts_many:hide", str(tmp_path))


def make_table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"status": Status.OK.value, **row, "row_key": i} for i, row in enumerate(rows)], SCHEMA)


def test_a_failure_of_the_function_keeps_an_earlier_status(list_redaction: Redaction) -> None:
    unreadable = {"status": Status.UNREADABLE.value, "error": "no UTF-8"}
    rows = redact_rows(
        make_table({"response": "explode"}, {"response": "explode", **unreadable}, {"response": "a"}), list_redaction
    ).to_pylist()
    assert [(row["status"], row["response"]) for row in rows] == [("error", None), ("unreadable", None), ("ok", "A")]
    assert rows[0]["error"].startswith("redact: AssertionError") and rows[1]["error"] == "no UTF-8"


def test_rows_without_text_do_not_call_the_function(list_redaction: Redaction) -> None:
    rows_without_text: list[list[dict[str, Any]]] = [[{}], [{"context": [None]}], []]
    for rows in rows_without_text:
        table = make_table(*rows)
        assert redact_rows(table, list_redaction) == table
