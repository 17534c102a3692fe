"""JSON Lines: every line that is not blank is a row, whatever stands in it, and has its values."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_row_ids, check_types, find_logs, jsonl
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.json_types import DEEPEST, MOST_KEYS, Seen, fitted
from tests.conftest import example_rows
from tests.jobs.input.test_logs import load, rows_of
from tests.raises import raises

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXTS, v, max_size=3), max_leaves=6)


def write(path: Path, *lines: Any, end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = end.join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "A.JSONL", "a.jsonl.gz", "a.ndjson.gz"])
def test_rows_by_any_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / "dt=1" / name, *example_rows(5), end="\r\n")
    rows = rows_of(load(tmp_path))
    assert [row["question"] for row in rows] == [row["question"] for row in example_rows(5)]
    assert {row["dt"] for row in rows} == {"1"} and rows[0]["context"] == example_rows(1)[0]["context"]


def test_a_line_that_is_no_object_is_a_row_and_says_which_line(tmp_path: Path) -> None:
    good = {**example_rows(1)[0], "row_id": "a"}
    deep = "[" * 100_000
    lines = [good, "{broken", "", "   ", "[1]", '"text"', '{"question": "\\ud800"}', deep, "1" * 5000, {**good, "row_id": "b"}]
    path = write(tmp_path / "a.jsonl", *lines)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b'\n{"question": "\xff"}')
    logs = load(path)
    check_row_ids(logs, logs.files, Columns())
    rows = rows_of(logs)
    assert [row["status"] for row in rows] == ["ok", *["unreadable"] * 6, "ok", "unreadable"]
    assert [row["row_id"] for row in rows] == ["a", *(f"a.jsonl#{i}" for i in range(1, 7)), "b", "a.jsonl#8"]
    assert [row["error"].partition(":")[0] for row in rows if row["error"]] == [f"line {n}" for n in (2, 5, 6, 7, 8, 9, 11)]
    assert rows[0]["error"] is None and not any("broken" in (row["error"] or "") for row in rows)


def test_an_id_that_is_missing_is_still_refused(tmp_path: Path) -> None:
    logs = load(write(tmp_path / "a.jsonl", {**example_rows(1)[0], "row_id": "a"}, example_rows(1)[0]))
    with raises("input.missing-ids", rows=1, column="row_id"):
        check_row_ids(logs, logs.files, Columns())


def test_types_are_of_all_lines_and_of_all_files(tmp_path: Path) -> None:
    base = example_rows(1)[0]
    changing: list[dict[str, Any]] = [
        {"n": 1, "x": 1, "big": 2**60, "m": {"a": 1}},
        {"n": 1.5, "x": "one", "big": 0.5, "m": {"b": ["z"]}},
        {"x": {"k": []}},
    ]
    write(tmp_path / "a.jsonl", *({**base, **more} for more in changing))
    write(tmp_path / "b.jsonl", {**base, "context": "One passage.", "n": "a text"})
    logs = load(tmp_path)
    check_types(logs, logs.files, logs.passthrough)
    rows = rows_of(logs)
    assert [row["n"] for row in rows] == ["1", "1.5", None, "a text"]
    assert [row["x"] for row in rows] == ["1", "one", '{"k": []}', None]
    assert [row["big"] for row in rows[:2]] == [str(2**60), "0.5"]
    assert [row["m"] for row in rows[:2]] == [{"a": 1, "b": None}, {"a": None, "b": ["z"]}]
    assert rows[3]["context"] == ["One passage."]


def test_stretches_are_read_alone_and_hold_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "STRETCH_BYTES", 1000)
    write(tmp_path / "a.jsonl", *[line for row in example_rows(40) for line in (row, "")], "{broken")
    logs = load(tmp_path)
    (file,) = logs.files
    assert file.row_groups > 5 and file.rows == 41
    with open_log(logs.fs, file) as log:
        assert sum(log.sizes) == 41
        for group in reversed(range(file.row_groups)):
            assert sum(batch.num_rows for batch in log.batches(group, 3)) == log.sizes[group]
    rows = rows_of(logs)
    assert [row["response"] for row in rows[:40]] == [row["response"] for row in example_rows(40)]
    assert rows[-1]["error"].startswith("line 81:")


def test_what_can_be_no_table_is_an_unreadable_file(tmp_path: Path) -> None:
    write(tmp_path / "wide.jsonl", *({f"k{i}": 1} for i in range(MOST_KEYS + 1)))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 50)[:-4])
    errors = {file.path: file.error for file in find_logs(str(tmp_path)).unreadable}
    assert set(errors) == {"cut.jsonl.gz", "wide.jsonl"} and "different keys" in str(errors["wide.jsonl"])


def test_a_change_of_any_byte_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *example_rows(3))
    (before,) = find_logs(str(path)).files
    path.write_bytes(path.read_bytes().replace(b"badge", b"Badge"))
    (after,) = find_logs(str(path)).files
    assert before.size == after.size and before.digest != after.digest


def text_of(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def same(value: Any, out: Any) -> bool:
    """Whether a value came through: as itself, as its JSON text, in a list of one, or with keys that are null beside it."""
    if value == out and isinstance(value, bool) == isinstance(out, bool):
        return True
    if isinstance(out, str):
        return value is not None and out == text_of(value)
    if isinstance(value, dict) and isinstance(out, dict):
        return value.keys() <= out.keys() and all(same(value.get(key), one) for key, one in out.items())
    if isinstance(out, list):
        values = value if isinstance(value, list) else [value]
        return len(values) == len(out) and all(map(same, values, out))
    return False


@given(st.lists(VALUES, max_size=6))
def test_no_value_is_lost_whatever_stands_beside_it(values: list[Any]) -> None:
    seen = Seen()
    for value in values:
        seen.add(value)
    kind = seen.type()
    out = pa.array([fitted(value, kind) for value in values], kind).to_pylist()
    assert len(out) == len(values) and all(map(same, values, out))


def test_what_lies_too_deep_is_text() -> None:
    value: Any = 1
    for _ in range(DEEPEST + 3):
        value = [value]
    seen = Seen()
    seen.add(value)
    out = pa.array([fitted(value, seen.type())], seen.type()).to_pylist()[0]
    for _ in range(DEEPEST):
        (out,) = out
    assert json.loads(out) == [[[1]]]
