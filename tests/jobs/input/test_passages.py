"""Contexts of every shape: no text is lost, order and nulls are kept, and ids are read."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input.passages import PassageColumn, can_be_context, read_passages
from tests.jobs.input.test_logs import load_logs, read_rows
from tests.jobs.input.test_types import write_columns
from tests.raises import refuses

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = ["text", "page_content", "pageContent", "content", "document.content", "passage", "chunk"]
IDS = ["id", "doc_id", "documentId", "document_id", "document.id"]


def to_pairs(column: PassageColumn) -> list[Any]:
    context, ids = column.context.to_pylist(), column.ids.to_pylist()
    return [(texts, row_ids) for texts, row_ids in zip(context, ids, strict=True)]


def to_json_array(*values: Any) -> pa.Array:
    return pa.array([value if value is None else json.dumps(value) for value in values], pa.string())


@given(st.lists(st.none() | st.lists(st.tuples(TEXT | st.none(), TEXT | st.none()), max_size=4), max_size=5), st.data())
def test_no_text_of_structs_is_lost(rows: list[list[tuple[str | None, str | None]] | None], data: st.DataObject) -> None:
    text, key = data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(IDS))
    kind = pa.list_(pa.struct([("score", pa.float64()), (key, pa.string()), (text, pa.string())]))
    items = [None if row is None else [{text: t, key: i, "score": 0.5} for t, i in row] for row in rows]
    array = pa.array(items, kind)
    start = data.draw(st.integers(0, len(rows)))
    for shape in (array, array.cast(pa.large_list(kind.value_type))):
        column = read_passages(shape.slice(start))
        assert column.context.to_pylist() == [None if row is None else [t for t, _ in row] for row in rows[start:]]
        ids = [None if row is None else [i for _, i in row] for row in rows[start:]]
        expected_ids = [row if row and any(i is not None for i in row) else None for row in ids]
        assert column.ids.to_pylist() == expected_ids and not column.invalid_utf8 and not column.invalid_json


@given(st.lists(st.tuples(st.none() | st.integers(-3, 3), TEXT), min_size=1, max_size=6), st.booleans())
def test_passages_are_sorted_by_rank_not_by_score(ranked: list[tuple[int | None, str]], as_json: bool) -> None:
    items = [{"text": text, "rank": rank, "score": -i, "id": str(i)} for i, (rank, text) in enumerate(ranked)]
    column = read_passages(to_json_array(items) if as_json else pa.array([items]))
    order = sorted(range(len(ranked)), key=lambda i: (ranked[i][0] is None, ranked[i][0] or 0))
    assert to_pairs(column) == [([ranked[i][1] for i in order], [str(i) for i in order])]


@given(st.lists(st.none() | TEXT, max_size=5))
def test_a_json_list_of_strings_is_a_list_of_passages(texts: list[str | None]) -> None:
    assert read_passages(to_json_array(texts, None)).context.to_pylist() == [texts, None]


@given(st.lists(st.none() | TEXT | st.builds(lambda t: "[" + t, TEXT) | st.builds(lambda t: '{"a": ' + t, TEXT)))
def test_a_string_is_a_passage_or_the_passages_of_its_json(texts: list[str | None]) -> None:
    """Any string is kept: as it is, or as the texts of its JSON."""
    column = read_passages(pa.array(texts, pa.string()))
    for text, row in zip(texts, column.context.to_pylist(), strict=True):
        if text is None or row == [text]:
            assert (row is None) == (text is None)
        else:
            value = json.loads(text)
            assert row == (value if isinstance(value, list) else [value])


@given(st.lists(st.lists(st.none() | TEXT, max_size=3) | st.none(), max_size=4))
def test_lists_of_strings_are_unchanged(rows: list[list[str | None] | None]) -> None:
    column = read_passages(pa.array(rows, pa.list_(pa.string())))
    assert column.context.to_pylist() == rows and column.ids.null_count == len(rows)


@pytest.mark.parametrize(
    ("value", "expected", "ids"),
    [
        ({"page_content": "A.", "metadata": {"source": "x"}}, ["A."], None),
        ({"id": 7, "text": "A.", "score": 1, "hours": {}, "title": "T", "document": {"text": "A.", "id": 7}}, ["A."], ["7"]),
        (
            [{"content": "A.", "doc_id": 7}, "B.", None, {"id": "c", "text": "C."}],
            ["A.", "B.", None, "C."],
            ["7", None, None, "c"],
        ),
        ([{"document": {"content": "A.", "id": "x", "score": 1}}], ["A."], ["x"]),
        ([{"id": "x", "score": 0.4}], [None], ["x"]),
        ([{"price": 3}, "B."], ['{"price": 3}', "B."], None),
        ([], [], None),
        ([{"text": "", "content": "A."}], ["A."], None),
        ([{"content": [{"type": "text", "text": "A."}, {"type": "text", "text": "B."}]}], ["A.\nB."], None),
        ([{"id": ["langchain", "Document"], "kwargs": {"page_content": "A."}}], ["A."], None),
        (["half a \ud83d character"], ["half a \ufffd character"], None),
    ],
)
def test_documents_in_json_are_parsed(value: Any, expected: list[str | None], ids: list[str | None] | None) -> None:
    assert to_pairs(read_passages(to_json_array(value))) == [(expected, ids)]


@pytest.mark.parametrize(
    "text",
    [
        "[1] The shop opens at nine.",
        "{braces} are no JSON",
        "[note: see {x}]",
        "[1, 2, 3]",
        "{}",
        '["a"] and so on',
        "[[1], [2]]",
        "['a', 'b']",
        '[{"a": 1}] and words behind',
        '{"price": 5}',
        "[",
        "{",
        '[sic] "x"',
        '["a" "b",]',
        '{"a": 1}\n{"a": 2}',
        str(["it's open", "b"]),
        '{"a": 1, // c',
        '{"a": "5" tall"}',
        ' [ {"text": NOPE}]',
        '["a", 1' + "0" * 4300 + "]",
        '["a", ' + "[" * 99999 + "]",
        '\u00a0["a", "b"]',
        '{"name": "Cafe", "address": "Main St", "text": "Nice place", "hours": {}}',
        '{"documents": [{"text": "a"}], "text": "summary"}',
        '{"text": "a", "document": {"content": "b"}}',
        '{"text": "a", "document": {"author": "b"}}',
    ],
)
def test_text_that_begins_with_a_bracket_stays_text(text: str) -> None:
    for other_values in ([], ['["x"]']):
        column = read_passages(pa.array([text, *other_values]))
        assert to_pairs(column)[0] == ([text], None) and not column.invalid_json


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b',
        '["a",',
        '[{"text": "a"}, {"tex',
        '{"text": "a',
        '{"text": "a\\',
        '{"text": "a\\u00',
        ' [ {"text": tru',
        '{"text":',
        '{"rank": 1.',
        "[" + '{"a":' * 9999,
    ],
)
def test_truncated_json_is_unreadable_and_its_text_is_kept(tmp_path: Path, text: str) -> None:
    write_columns(tmp_path / "a.parquet", context=pa.array(["x", text, None]))
    rows = read_rows(load_logs(tmp_path))
    assert [row["status"] for row in rows] == ["ok", "unreadable", "ok"] and rows[1]["context"] == [text]
    assert rows[1]["error"] == "column 'context' contains invalid JSON: it is cut off"


def test_invalid_utf8_in_structs_is_detected(tmp_path: Path) -> None:
    bad = pa.array([b"fine", b"caf\xe9", b"good"])
    items = pa.StructArray.from_arrays([bad, pa.array([b"\xff", b"\xff", b"\xff"])], ["text", "embedding"])
    write_columns(tmp_path / "a.parquet", context=pa.ListArray.from_arrays([0, 1, 2, 3], items))
    rows = read_rows(load_logs(tmp_path))
    assert [row["status"] for row in rows] == ["ok", "unreadable", "ok"] and rows[1]["context"] == ["caf\\xe9"]


def test_a_single_struct_and_numeric_ids_are_read(tmp_path: Path) -> None:
    structs = pa.array([{"doc_id": 3, "text": "A."}, None, {"doc_id": None, "text": "B."}])
    write_columns(tmp_path / "a.parquet", context=structs)
    rows = read_rows(load_logs(tmp_path))
    assert [(row["context"], row["passage_ids"]) for row in rows] == [(["A."], ["3"]), (None, None), (["B."], None)]


def test_types_without_text_are_refused(tmp_path: Path) -> None:
    assert not can_be_context(pa.list_(pa.struct([("title", pa.string())]))) and can_be_context(pa.list_(pa.string_view()))
    write_columns(tmp_path / "a.parquet", context=pa.array([[{"title": "x"}]] * 3))
    with refuses("input.column-shape"):
        load_logs(tmp_path)


def test_a_user_column_named_passage_ids_is_passed_through(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", passage_ids=pa.array([1, 2, 3]))
    rows = read_rows(load_logs(tmp_path))
    assert [row["input_passage_ids"] for row in rows] == [1, 2, 3] and Columns().messages is None


def test_text_ranks_sort_structs_and_json_alike() -> None:
    items = [{"text": text, "rank": rank} for text, rank in (("A.", "10"), ("B.", "x"), ("C.", "9"), ("D.", None))]
    for shape in (pa.array([items]), to_json_array(items)):
        assert read_passages(shape).context.to_pylist() == [["C.", "A.", "B.", "D."]]
