"""Tables come out as what they went in, with their rows in order."""

import pandas as pd
import polars as pl
import pyarrow as pa

import ragassay
from tests.jobs.api.conftest import ALONE, as_table, odd_rows
from tests.raises import raises


def test_each_kind_comes_back_with_the_same_rows() -> None:
    arrow = as_table(odd_rows())
    found = ragassay.judge(arrow, ALONE)
    by_polars = ragassay.judge(pl.DataFrame(arrow), ALONE)
    frame = arrow.to_pandas().set_index(pd.Index([f"i{i}" for i in range(arrow.num_rows)]))
    by_pandas = ragassay.judge(frame, ALONE)
    assert isinstance(found, pa.Table) and isinstance(by_polars, pl.DataFrame) and isinstance(by_pandas, pd.DataFrame)
    assert found["row_id"].to_pylist() == [row["row_id"] for row in odd_rows()] == by_polars["row_id"].to_list()
    assert list(by_pandas.index) == list(frame.index) and list(by_pandas.columns) == found.column_names
    assert by_polars["score"].to_list() == found["score"].to_pylist()
    assert by_polars["sentences"].to_list()[0] == found["sentences"][0].as_py()
    assert by_pandas["score"].isna().tolist() == [score is None for score in found["score"].to_pylist()]
    for rows in (found, by_polars, by_pandas):
        assert repr(ragassay.show(rows, 2)).splitlines() == repr(ragassay.show(found, 2)).splitlines()


def test_a_frame_as_people_have_it() -> None:
    frame = pd.DataFrame(
        {
            "question": ["When?", "When?", "When?"],
            "context": ["The shop opens at 7 a.m.", "The shop opens at 7 a.m.", None],
            "response": ["At 7 a.m.", float("nan"), "At 8 a.m."],
            "seen": pd.to_datetime(["2026-01-01", "2026-01-02", None]),
            "kind": pd.Categorical(["a", "b", "a"]),
        }
    )
    found = ragassay.judge(frame, ALONE)
    assert found["status"].tolist() == ["ok", "no_response", "no_context"]
    assert found["seen"].tolist()[0] == pd.Timestamp("2026-01-01") and found["kind"].tolist() == ["a", "b", "a"]


def test_what_is_no_table_is_named() -> None:
    rows = {"question": ["q"], "context": ["c"], "response": ["r"]}
    with raises("judge.no-frame", type="dict"):
        ragassay.judge(rows, ALONE)
    with raises("judge.no-frame", type="LazyFrame"):
        ragassay.judge(pl.LazyFrame(rows), ALONE)
    with raises("judge.mixed-column"):
        ragassay.judge(pd.DataFrame({**rows, "context": [3.5j]}), ALONE)
    with raises("judge.mixed-column"):
        ragassay.judge(pd.DataFrame({name: values * 2 for name, values in rows.items()} | {"context": ["c", ["c"]]}), ALONE)
    with raises("judge.column-name", column=0, type="int"):
        ragassay.judge(pd.DataFrame([["q", "c", "r"]]), ALONE)
    with raises("show.missing-columns"):
        ragassay.show(pl.DataFrame(rows))
