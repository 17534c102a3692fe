"""Invalid UTF-8 makes a row unreadable; it does not fail the run."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_row_ids
from ragassay.jobs.input.text import escape_invalid_utf8, to_strings
from tests.jobs.input.test_logs import load_logs, read_rows
from tests.jobs.input.test_types import write_columns

INVALID = pa.array([b"fine", b"caf\xe9", None]).view(pa.string())


@pytest.mark.parametrize("name", ["question", "context", "response", "tenant", "row_id"])
def test_a_row_with_invalid_utf8_is_unreadable_and_its_bytes_are_escaped(tmp_path: Path, name: str) -> None:
    column = INVALID if name != "row_id" else pa.array([b"fine", b"caf\xe9", b"x"]).view(pa.string())
    write_columns(tmp_path / "a.parquet", **{name: column})
    logs = load_logs(tmp_path)
    check_row_ids(logs, logs.files, Columns())
    rows = read_rows(logs)
    assert [row["status"] for row in rows] == ["ok", "unreadable", "ok"]
    assert rows[1]["error"] == f"column {name!r} contains invalid UTF-8"
    assert rows[1][name] == (["caf\\xe9"] if name == "context" else "caf\\xe9")
    assert all(row["error"] is None for row in (rows[0], rows[2]))


def test_invalid_utf8_in_nested_columns_is_detected(tmp_path: Path) -> None:
    deep = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1, 2, 3], INVALID)], ["a"])
    write_columns(tmp_path / "a.parquet", meta=deep, context=pa.ListArray.from_arrays([0, 1, 1, 3], INVALID))
    rows = read_rows(load_logs(tmp_path))
    assert [row["status"] for row in rows] == ["ok", "unreadable", "unreadable"]
    assert [row["error"].split("'")[1] for row in rows[1:]] == ["meta", "context"]
    assert rows[1]["meta"] == {"a": ["caf\\xe9"]} and rows[2]["context"] == ["caf\\xe9", None]


def test_invalid_utf8_in_dictionaries_and_bytes_is_detected(tmp_path: Path) -> None:
    write_columns(
        tmp_path / "a.parquet",
        tenant=pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), INVALID.slice(0, 2)),
        response=pa.array([b"A.", b"A.", b"\xed\xa0\x80"]),  # half a surrogate pair
    )
    assert [row["status"] for row in read_rows(load_logs(tmp_path))] == ["ok", "unreadable", "unreadable"]


def test_an_odd_date_does_not_count_as_invalid_utf8(tmp_path: Path) -> None:
    odd = pa.array([1], pa.int64()).view(pa.date64())
    meta = pa.StructArray.from_arrays([odd, pa.array(["x"])], ["day", "name"])
    array, bad = escape_invalid_utf8(meta)
    assert not bad and array.equals(meta)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=4), st.text(max_size=3).map(str.encode)), max_size=6))
def test_strings_are_valid_utf8_and_only_invalid_rows_change(values: list[bytes | None]) -> None:
    for array in (pa.array(values, pa.binary()), pa.array(values, pa.binary()).view(pa.string())):
        strings, bad = to_strings(array)
        strings.validate(full=True)
        for row, (value, text) in enumerate(zip(values, strings.to_pylist(), strict=True)):
            if value is None:
                assert text is None and row not in bad
            else:
                fine = value.decode(errors="ignore").encode() == value
                assert (row in bad) is not fine and (not fine or text == value.decode())
