"""Judge rows of every Python library: the result has the same type and the same rows in the same order."""

from typing import Any

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ragassay
from tests.jobs.api.conftest import DETECTOR_JOB, make_odd_rows, make_table
from tests.raises import raises


def test_each_table_type_is_returned_with_the_same_rows() -> None:
    arrow_table = make_table(make_odd_rows())
    judged = ragassay.judge(arrow_table, DETECTOR_JOB)
    judged_polars = ragassay.judge(pl.DataFrame(arrow_table), DETECTOR_JOB)
    frame = arrow_table.to_pandas().set_index(pd.Index([f"i{i}" for i in range(arrow_table.num_rows)]))
    judged_pandas = ragassay.judge(frame, DETECTOR_JOB)
    judged_dicts = ragassay.judge(make_odd_rows(), DETECTOR_JOB)
    judged_dataset = ragassay.judge(datasets.Dataset(datasets.table.InMemoryTable(arrow_table)), DETECTOR_JOB)
    assert isinstance(judged, pa.Table) and isinstance(judged_dataset, datasets.Dataset)
    assert isinstance(judged_polars, pl.DataFrame) and isinstance(judged_pandas, pd.DataFrame)
    assert judged["row_id"].to_pylist() == [row["row_id"] for row in make_odd_rows()] == judged_polars["row_id"].to_list()
    assert list(judged_pandas.index) == list(frame.index) and list(judged_pandas.columns) == judged.column_names
    assert judged_polars["score"].to_list() == judged["score"].to_pylist()
    assert [row["score"] for row in judged_dicts] == judged["score"].to_pylist() == judged_dataset["score"][:]
    assert judged_polars["sentences"].to_list()[0] == judged["sentences"][0].as_py()
    assert judged_pandas["score"].isna().tolist() == [score is None for score in judged["score"].to_pylist()]
    for rows in (judged, judged_polars, judged_pandas, judged_dicts, judged_dataset):
        assert repr(ragassay.show(rows, 2)).splitlines() == repr(ragassay.show(judged, 2)).splitlines()
        assert ragassay.show(rows, 2)[1].row["row_id"] == "ok 1"


def test_selected_rows_of_a_hugging_face_dataset_are_judged() -> None:
    rows = [{name: row[name] for name in ("row_id", "question", "context", "response")} for row in make_odd_rows()[:4]]
    judged = ragassay.judge(datasets.Dataset.from_list(rows).select([2, 0]), DETECTOR_JOB)
    assert judged["row_id"][:] == ["ok 2", "ok 0"]


CONTEXTS: list[Any] = [
    "It opens at 7 a.m.",
    ["It opens at 7 a.m."],
    [{"text": "It opens at 7 a.m.", "score": 0.5}],
    [{"page_content": "It opens at 7 a.m.", "metadata": {"page": 1}}],
    ("It opens at 7 a.m.",),
    {"content": "It opens at 7 a.m."},
    '["It opens at 7 a.m."]',
    None,
]


def make_mixed_rows() -> list[dict[str, Any]]:
    rows = enumerate(CONTEXTS)
    return [{"question": "When?", "context": context, "response": f"It opens at {i} a.m."} for i, context in rows]


@pytest.mark.parametrize("kind", ["dicts", "pandas", "polars"])
def test_a_column_of_contexts_may_mix_every_shape(kind: str) -> None:
    rows: Any = make_mixed_rows()
    if kind == "pandas":
        rows = pd.DataFrame(rows)
    if kind == "polars":
        names = ("question", "response")
        rows = pl.DataFrame({name: [row[name] for row in make_mixed_rows()] for name in names}).with_columns(
            pl.Series("context", CONTEXTS, dtype=pl.Object)
        )
    shown = ragassay.show(ragassay.judge(rows, DETECTOR_JOB))
    assert [verdict.row["context"] for verdict in shown] == [["It opens at 7 a.m."]] * 7 + [None]
    assert [verdict.status for verdict in shown] == ["ok"] * 7 + ["no_context"]
    single = [ragassay.check("When?", context, "It opens at 7 a.m.", fast=True).row["context"] for context in CONTEXTS]
    assert single == [verdict.row["context"] for verdict in shown]


def test_passages_in_arrays_of_numpy_are_read() -> None:
    frame = pd.DataFrame({"question": ["q"] * 2, "context": [["a b c"], ["d e f", "g"]], "response": ["a b c"] * 2})
    read_back = pa.Table.from_pandas(frame).to_pandas()
    assert type(read_back["context"][0]).__name__ == "ndarray"
    read_back.loc[2] = ["q", "a b c", "a b c"]
    judged = ragassay.judge(read_back, DETECTOR_JOB)
    assert [list(context) for context in judged["context"]] == [["a b c"], ["d e f", "g"], ["a b c"]]


def test_a_column_of_conversations_may_mix_shapes() -> None:
    turns = [
        {"role": "tool", "content": "It opens at 7 a.m."},
        {"role": "user", "content": [{"type": "text", "text": "When?"}]},
        {"role": "assistant", "content": "At 7 a.m."},
    ]
    job = {**DETECTOR_JOB, "input": {"columns": {"messages": "turns"}}}
    rows: list[dict[str, Any]] = [{"turns": turns}, {"turns": str(turns).replace("'", '"')}]
    judged = ragassay.judge(rows, job)
    assert [row["question"] for row in judged] == ["When?", "When?"] and judged[0]["context"] == ["It opens at 7 a.m."]


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


COLUMNS: dict[str, list[Any]] = {"question": ["q"], "context": ["c"], "response": ["r"]}


def test_rows_of_another_type_are_an_error_that_names_the_type() -> None:
    for rows in (COLUMNS, pl.LazyFrame(COLUMNS), datasets.DatasetDict(), ["a"], "logs/"):
        with raises("judge.no-frame", type=type(rows).__name__):
            ragassay.judge(rows, DETECTOR_JOB)


def test_an_invalid_column_is_an_error_that_names_the_frame_the_column_and_the_row() -> None:
    twice = {name: values * 2 for name, values in COLUMNS.items()}
    with raises("check.field-type", answer="row 1 of the pandas.DataFrame", field="context", actual="a complex"):
        ragassay.judge(pd.DataFrame({**COLUMNS, "context": [3.5j]}), DETECTOR_JOB)
    with raises("check.field-type", answer="row 2 of the list of dicts", actual="a list that contains a number"):
        ragassay.judge([{**row, "context": context} for row, context in zip(make_odd_rows(), ["c", [3]], strict=False)])
    with raises("check.field-type", answer="row 2 of the pandas.DataFrame", field="response", actual="a number"):
        ragassay.judge(pd.DataFrame({**twice, "response": ["r", 4]}), DETECTOR_JOB)
    types = "str in row 1, list in row 2"
    with raises("judge.mixed-column", column="tags", frame="pandas.DataFrame", types=types):
        ragassay.judge(pd.DataFrame({**twice, "tags": ["a", ["a"]]}), DETECTOR_JOB)
    with raises("judge.column-name", column=0, type="int"):
        ragassay.judge(pd.DataFrame([["q", "c", "r"]]), DETECTOR_JOB)
    with raises("input.faults", uri="pandas.DataFrame") as caught:
        ragassay.judge(pd.DataFrame({**COLUMNS, "response": [3]}).rename(columns={"context": "docs"}), DETECTOR_JOB)
    assert "ragassay init" not in str(caught.value) and "'my_column'" in str(caught.value)
    with raises("input.faults", uri="pandas.DataFrame"):
        ragassay.judge(pd.DataFrame([["q", "c", "r", "r"]], columns=[*COLUMNS, "response"]), DETECTOR_JOB)
    with raises("input.repeated-ids", uri="polars.DataFrame"):
        ragassay.judge(pl.DataFrame({**twice, "row_id": ["a", "a"]}), DETECTOR_JOB)
    with raises("check.no-unicode"):
        ragassay.judge([{**make_odd_rows()[0], "response": "half \ud83d"}], DETECTOR_JOB)
    with raises("input.no-rows", uri="list of dicts"):
        ragassay.judge([], DETECTOR_JOB)
    with raises("show.missing-columns"):
        ragassay.show(pl.DataFrame(COLUMNS))


@pytest.mark.slow
def test_a_ray_dataset_stays_lazy_and_may_mix_contexts_in_a_block(shared_ray_session: None) -> None:
    import ray.data

    judged: Any = ragassay.judge(ray.data.from_items(make_mixed_rows(), override_num_blocks=1), fast=True)
    assert isinstance(judged, ray.data.Dataset)
    rows = sorted(judged.take_all(), key=lambda row: row["response"])
    assert [row["context"] for row in rows] == [["It opens at 7 a.m."]] * 7 + [None]
    alone = ragassay.check("When?", CONTEXTS[0], "It opens at 0 a.m.", fast=True)
    assert rows[0]["score"] == pytest.approx(alone.score)
