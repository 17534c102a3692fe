"""Pass-through columns: any type is kept unchanged, or refused before anything is scored."""

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_row_ids, check_types
from ragassay.jobs.input.types import is_lossless_cast, merge_schemas, plain_type, to_plain
from tests.jobs.input.test_logs import load_logs, read_rows
from tests.raises import raises, refuses

BASE = {"question": ["Q?"], "context": ["C."], "response": ["A."]}
BIG = 2**53 + 1
UUIDS = ["00000000-0000-0000-0000-000000000000", "01010101-0101-0101-0101-010101010101"]


def write_columns(path: Path, **columns: pa.Array) -> Path:
    rows = len(next(iter(columns.values())))
    table = pa.table({name: values * rows for name, values in BASE.items() if name not in columns} | columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(table, path)
    except pa.ArrowNotImplementedError as error:  # an older pyarrow
        pytest.skip(str(error))
    return path


def read_checked(folder: Path) -> list[dict[str, Any]]:
    logs = load_logs(folder)
    check_types(logs, logs.files, logs.passthrough)
    return read_rows(logs)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([7, BIG]), pa.array([1.5])),
        (pa.array([2**63], pa.uint64()), pa.array([-1], pa.int64())),
        (pa.array([datetime.datetime(9999, 1, 1)], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))),
        (pa.array([[BIG]]), pa.array([[0.5]])),
        (pa.array([{"a": BIG}]), pa.array([{"a": 0.5, "b": "x"}])),
        (
            pa.array([[("k", BIG)]], pa.map_(pa.string(), pa.int64())),
            pa.array([[("k", 0.5)]], pa.map_(pa.string(), pa.float64())),
        ),
        (pa.array([Decimal("0.10")]), pa.array([0.5])),
        (pa.array([10**10]), pa.array([Decimal("0.10")])),
        (pa.array([1]), pa.array(["first"])),
        (pa.array([datetime.date(2026, 1, 1)]), pa.array([1], pa.timestamp("us"))),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us"))),
        (pa.array([True]), pa.array([1])),
        (pa.array([[1]]), pa.array([1])),
        (pa.array([{"a": 1}]), pa.array([[1]])),
    ],
)
def test_values_without_a_common_type_are_refused(tmp_path: Path, first: pa.Array, second: pa.Array) -> None:
    write_columns(tmp_path / "a.parquet", n=first)
    write_columns(tmp_path / "b.parquet", n=second)
    with raises("input.column-type", "input.mixed-types", "input.values-too-wide"):
        read_checked(tmp_path)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (pa.array([7, None, 2**53]), pa.array([1.5, math.inf]), [7.0, None, 2.0**53, 1.5, math.inf]),
        (pa.array([1], pa.int8()), pa.array([2**62]), [1, 2**62]),
        (pa.array([1], pa.uint64()), pa.array([-1]), [1, -1]),
        (pa.array([0.5], pa.float32()).cast(pa.float16()), pa.array([0.25], pa.float32()), [0.5, 0.25]),
        (pa.array([Decimal("0.10")]), pa.array([Decimal("1.5")]), [Decimal("0.10"), Decimal("1.50")]),
        (pa.nulls(1), pa.array([[{"a": 1}]]), [None, [{"a": 1}]]),
        (pa.array(["x"]).dictionary_encode(), pa.array(["y"]), ["x", "y"]),
        (pa.array(["x"], pa.string_view()), pa.array(["y"], pa.large_string()), ["x", "y"]),
        (pa.array([[1]], pa.list_view(pa.int64())), pa.array([[2, 3]], pa.list_(pa.int64(), 2)), [[1], [2, 3]]),
        (pa.array([{"a": 1}]), pa.array([{"a": 2, "b": "x"}]), [{"a": 1, "b": None}, {"a": 2, "b": "x"}]),
        (pa.array(["{}"], pa.json_()), pa.array(["x"]), ["{}", "x"]),
        (pa.array([b"0" * 16], pa.uuid()), pa.array([b"1" * 16], pa.binary(16)), [b"0" * 16, b"1" * 16]),
        (pa.array([b"x"]), pa.array(["y"]), [b"x", b"y"]),
        (pa.array([1], pa.duration("s")), pa.array([1], pa.duration("ms")), None),
        (pa.array([1], pa.time32("s")), pa.array([1], pa.time64("us")), None),
        (pa.array([datetime.date(2026, 1, 1)]), pa.array([datetime.date(2026, 1, 2)], pa.date64()), None),
        (pa.array([Decimal(1)], pa.decimal256(50, 2)), pa.array([Decimal(2)], pa.decimal128(38, 2)), [Decimal(1), Decimal(2)]),
    ],
)
def test_types_with_a_common_type_are_merged(tmp_path: Path, first: pa.Array, second: pa.Array, both: list[Any] | None) -> None:
    write_columns(tmp_path / "a.parquet", n=first)
    write_columns(tmp_path / "b.parquet", n=second)
    values = [row["n"] for row in read_checked(tmp_path)]
    assert values == both if both is not None else len(values) == len(first) + len(second)


def test_only_the_values_of_files_to_score_are_checked(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", n=pa.array([BIG]))
    write_columns(tmp_path / "b.parquet", n=pa.array([0.5]))
    logs = load_logs(tmp_path)
    check_types(logs, logs.files[1:], logs.passthrough)
    with raises("input.values-too-wide", type="int64", path="a.parquet", common_type="double"):
        check_types(logs, logs.files[:1], logs.passthrough)


UNUSUAL_COLUMNS: dict[str, pa.Array] = {
    "": pa.array([1]),
    "a.b": pa.array(["x"]),
    "a": pa.array([{"b": "y"}]),
    "Tenant": pa.array(["T"]),
    "tenant": pa.array(["t"]),
    "status": pa.array(["200"]),
    "members": pa.array([3]),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "category": pa.array(["c"]).dictionary_encode(),
    "uuid": pa.array([b"0" * 16], pa.uuid()),
    "json": pa.array(["{}"], pa.json_()),
    "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "t", "v"), pa.array(["z"])),
    "view": pa.array(["v"], pa.string_view()),
    "list_view": pa.array([["v"]], pa.list_view(pa.string_view())),
    "half": pa.array([0.5], pa.float32()).cast(pa.float16()),
    "decimal": pa.array([Decimal("1.25")], pa.decimal256(60, 2)),
    "duration": pa.array([1], pa.duration("us")),
    "zoned": pa.array([1], pa.timestamp("us", "Europe/Berlin")),
    "nothing": pa.nulls(1),
    "nothings": pa.array([[None]], pa.list_(pa.null())),
    "bytes": pa.array([b"\xff"]),
    "nested": pa.array([[{"a": [{"b": ["c"]}]}]]),
    "a column\n": pa.array(["x"]),
}


def test_unusual_columns_are_passed_through(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", **UNUSUAL_COLUMNS)
    (row,) = read_checked(tmp_path)
    assert {"input_status", "input_members"} < set(row) and row["status"] == "ok"
    assert (row["a"], row["a.b"], row[""], row["category"], row["list_view"]) == ({"b": "y"}, "x", 1, "c", ["v"])
    assert set(row) >= set(UNUSUAL_COLUMNS) - {"status", "members"}


@pytest.mark.parametrize("name", ["response", "tenant"])
def test_repeated_column_names_are_refused(tmp_path: Path, name: str) -> None:
    columns = [*BASE.items(), ("tenant", ["t"]), (name, ["again"])]
    pq.write_table(pa.table([c for _, c in columns], names=[n for n, _ in columns]), tmp_path / "a.parquet")
    with refuses("input.same-name"):
        load_logs(tmp_path)


def test_a_column_with_the_output_name_of_another_is_refused(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", status=pa.array([1]), input_status=pa.array([2]))
    with raises("input.column-twice"):
        load_logs(tmp_path)


def test_a_repeated_partition_key_is_refused(tmp_path: Path) -> None:
    write_columns(tmp_path / "dt=1" / "dt=2" / "a.parquet", n=pa.array([1]))
    with refuses("input.repeated-key"):
        load_logs(tmp_path)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([7, 8], pa.uint64()), ["7", "8"]),
        (pa.array([b"\0" * 16, b"\1" * 16], pa.uuid()), UUIDS),
        (pa.array([b"a", b"\xff"]), ["a", "\\xff"]),
        (pa.array([b"ab", b"\xff\0"], pa.binary(2)), ["ab", "\\xff\0"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array([Decimal("1.5"), Decimal("2.5")]), ["1.5", "2.5"]),
    ],
)  # fmt: skip
def test_ids_of_many_types_are_read(tmp_path: Path, ids: pa.Array, expected: list[str]) -> None:
    write_columns(tmp_path / "a.parquet", row_id=ids)
    logs = load_logs(tmp_path)
    check_row_ids(logs, logs.files, Columns())
    assert [(row["row_id"], row["status"]) for row in read_rows(logs)] == [(i, "ok") for i in expected]


def test_lists_as_ids_are_refused_and_null_ids_are_counted(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", row_id=pa.array([[1]]))
    with refuses("input.column-shape"):
        load_logs(tmp_path)
    write_columns(tmp_path / "a.parquet", row_id=pa.nulls(1))
    logs = load_logs(tmp_path)
    with raises("input.missing-ids", rows=1, column="row_id"):
        check_row_ids(logs, logs.files, Columns())


def test_an_id_column_name_can_contain_dots(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.parquet", **{"meta.id": pa.array(["x"]), "meta": pa.array([{"id": "y"}])})
    columns = Columns(row_id="meta.id")
    logs = load_logs(tmp_path, columns)
    check_row_ids(logs, logs.files, columns)
    assert read_rows(logs, columns)[0]["row_id"] == "x"


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_(pa.string(), 2), pa.list_view(pa.string_view()),
        pa.large_list_view(pa.string()), pa.list_(pa.binary()), pa.list_(pa.dictionary(pa.int8(), pa.string())),
    ],
)  # fmt: skip
def test_contexts_of_all_list_types_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    values = [["a", "b"], None, ["c", None]]
    plain_values = [v and [p and p.encode() for p in v] for v in values] if kind == pa.list_(pa.binary()) else values
    write_columns(tmp_path / "a.parquet", context=pa.array(plain_values, kind))
    assert [row["context"] for row in read_rows(load_logs(tmp_path))] == values


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.json_()])
def test_texts_of_all_types_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    texts = pa.array(["Ein Satz.", None], pa.string()).cast(kind if kind != pa.json_() else pa.string())
    texts = texts if kind != pa.json_() else texts.cast(kind)
    write_columns(tmp_path / "a.parquet", question=texts, context=texts, response=texts)
    first, second = read_rows(load_logs(tmp_path))
    assert (first["question"], first["context"], first["response"]) == ("Ein Satz.", ["Ein Satz."], "Ein Satz.")
    assert (second["question"], second["context"], second["response"]) == (None, None, None)


@pytest.mark.parametrize("name", ["question", "context", "response"])
def test_null_columns_are_read_as_null(tmp_path: Path, name: str) -> None:
    write_columns(tmp_path / "a.parquet", **{name: pa.nulls(2)})
    assert [row[name] for row in read_rows(load_logs(tmp_path))] == [None, None]


@pytest.mark.parametrize(
    "context",
    [pa.array([[{"title": "c", "score": 0.5}]]), pa.array([{"title": "c"}]), pa.array([[["c"]]]),
     pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())), pa.array([5])],
)  # fmt: skip
def test_contexts_without_text_are_refused(tmp_path: Path, context: pa.Array) -> None:
    write_columns(tmp_path / "a.parquet", context=context)
    with refuses("input.column-shape"):
        load_logs(tmp_path)


integers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.none(), integers, st.integers(-(2**54), 2**54)), max_size=4))
def test_a_lossless_cast_keeps_every_value(values: list[int | None]) -> None:
    array = pa.array(values, pa.int64())
    kind = merge_schemas([pa.schema([("n", pa.int64())]), pa.schema([("n", pa.float64())])]).field("n").type
    assert is_lossless_cast(pa.int64(), kind) is None
    try:
        cast = array.cast(kind)
    except pa.ArrowInvalid:
        assert any(abs(v) > 2**53 for v in values if v is not None)
    else:
        assert [None if v is None else int(v) for v in cast.to_pylist()] == values


texts = st.one_of(st.none(), st.text(max_size=3))
KINDS = {
    pa.list_(pa.list_view(pa.string_view())): st.lists(st.one_of(st.none(), st.lists(texts, max_size=2)), max_size=2),
    pa.struct([("a", pa.string_view()), ("b", pa.list_(pa.string_view()))]): st.fixed_dictionaries(
        {"a": texts, "b": st.one_of(st.none(), st.lists(texts, max_size=2))}
    ),
    pa.list_(pa.string_view(), 2): st.lists(texts, min_size=2, max_size=2),
    pa.large_list_view(pa.int8()): st.lists(st.integers(0, 9), max_size=2),
    pa.map_(pa.string_view(), pa.string_view()): st.lists(st.tuples(st.text(max_size=2), texts), max_size=2),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(st.data())
def test_a_plain_array_has_the_same_values(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.one_of(st.none(), KINDS[kind]), max_size=5))
    start = data.draw(st.integers(0, len(values)))
    array = pa.array(values, kind).slice(start)
    plain = to_plain(array)
    plain.validate(full=True)
    assert plain.type == plain_type(kind) and plain.to_pylist() == array.to_pylist()
