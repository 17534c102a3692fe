"""Judge polars, pandas and pyarrow tables: the result has the same type and the same rows in the same order."""

import pandas as pd
import polars as pl
import pyarrow as pa

import ragassay
from tests.jobs.api.conftest import DETECTOR_JOB, make_odd_rows, make_table
from tests.raises import raises


def test_each_table_type_is_returned_with_the_same_rows() -> None:
    arrow_table = make_table(make_odd_rows())
    judged = ragassay.judge(arrow_table, DETECTOR_JOB)
    judged_polars = ragassay.judge(pl.DataFrame(arrow_table), DETECTOR_JOB)
    frame = arrow_table.to_pandas().set_index(pd.Index([f"i{i}" for i in range(arrow_table.num_rows)]))
    judged_pandas = ragassay.judge(frame, DETECTOR_JOB)
    assert isinstance(judged, pa.Table)
    assert isinstance(judged_polars, pl.DataFrame) and isinstance(judged_pandas, pd.DataFrame)
    assert judged["row_id"].to_pylist() == [row["row_id"] for row in make_odd_rows()] == judged_polars["row_id"].to_list()
    assert list(judged_pandas.index) == list(frame.index) and list(judged_pandas.columns) == judged.column_names
    assert judged_polars["score"].to_list() == judged["score"].to_pylist()
    assert judged_polars["sentences"].to_list()[0] == judged["sentences"][0].as_py()
    assert judged_pandas["score"].isna().tolist() == [score is None for score in judged["score"].to_pylist()]
    for rows in (judged, judged_polars, judged_pandas):
        assert repr(ragassay.show(rows, 2)).splitlines() == repr(ragassay.show(judged, 2)).splitlines()


def test_a_pandas_frame_may_have_nan_dates_and_categories() -> None:
    frame = pd.DataFrame(
        {
            "question": ["When?", "When?", "When?"],
            "context": ["The shop opens at 7 a.m.", "The shop opens at 7 a.m.", None],
            "response": ["At 7 a.m.", float("nan"), "At 8 a.m."],
            "seen": pd.to_datetime(["2026-01-01", "2026-01-02", None]),
            "kind": pd.Categorical(["a", "b", "a"]),
        }
    )
    judged = ragassay.judge(frame, DETECTOR_JOB)
    assert judged["status"].tolist() == ["ok", "no_response", "no_context"]
    assert judged["seen"].tolist()[0] == pd.Timestamp("2026-01-01") and judged["kind"].tolist() == ["a", "b", "a"]


def test_an_invalid_table_is_an_error_that_names_the_fault() -> None:
    columns = {"question": ["q"], "context": ["c"], "response": ["r"]}
    mixed = {name: values * 2 for name, values in columns.items()} | {"context": ["c", ["c"]]}
    with raises("judge.no-frame", type="dict"):
        ragassay.judge(columns, DETECTOR_JOB)
    with raises("judge.no-frame", type="LazyFrame"):
        ragassay.judge(pl.LazyFrame(columns), DETECTOR_JOB)
    with raises("judge.mixed-column"):
        ragassay.judge(pd.DataFrame({**columns, "context": [3.5j]}), DETECTOR_JOB)
    with raises("judge.mixed-column"):
        ragassay.judge(pd.DataFrame(mixed), DETECTOR_JOB)
    with raises("judge.column-name", column=0, type="int"):
        ragassay.judge(pd.DataFrame([["q", "c", "r"]]), DETECTOR_JOB)
    with raises("show.missing-columns"):
        ragassay.show(pl.DataFrame(columns))
