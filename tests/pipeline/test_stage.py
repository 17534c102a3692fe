"""Stages declare their columns, and a plan is checked before it starts."""

import pickle
from dataclasses import dataclass

import pyarrow as pa
import pytest

from ragassay.jobs.config.job import make_job
from ragassay.jobs.scoring.stages import make_stages
from ragassay.pipeline.detectors.frequencies import count_frequencies
from ragassay.pipeline.stages.judge_input_output import JudgeInputStage, JudgeOutputStage
from ragassay.pipeline.stages.stage import Stage, check_columns
from ragassay.schemas.columns import LOGS, raw_schema
from tests.raises import raises

JOB = {
    "members": {
        "slms": [
            {"name": "a", "model": "m"},
            {"name": "b", "model": "m", "engine": {"kind": "server", "base_url": "http://h/v1"}},
        ],
        "uncertainty": [{"name": "u", "model": "m"}],
        "detectors": [{"name": "novelty", "kind": "novelty"}],
        "rerank": {"model": "m"},
    }
}


NO_COLUMNS = pa.schema([])


@dataclass
class ExampleStage(Stage):
    columns_in: tuple[str, ...] = ()
    columns_out: pa.Schema = NO_COLUMNS
    columns_dropped: tuple[str, ...] = ()
    name: str = "step"

    def __call__(self, table: pa.Table) -> pa.Table:
        return table


def test_the_stages_of_a_job_fit_together_and_are_small() -> None:
    job = make_job(JOB)
    plan = make_stages(job, lambda: count_frequencies([]))
    check_columns(plan, LOGS, raw_schema(pa.schema([])))
    assert [stage.name for stage in plan] == ["split", "rerank", "a", "b", "u", "detect"]
    for stage in make_stages(job):
        assert pickle.loads(pickle.dumps(stage)) == stage


def test_a_stage_returns_the_columns_that_it_declares() -> None:
    table = LOGS.empty_table().select(["row_key", "row_id", "question", "context", "response"])
    table = table.append_column("sentences", pa.array([], pa.list_(pa.string())))
    for stage in (JudgeInputStage(), JudgeOutputStage("run")):
        table = stage(table)
        assert set(stage.columns_out.names) <= set(table.column_names)
        assert all(table.schema.field(column.name).type == column.type for column in stage.columns_out)
        assert not set(stage.columns_dropped) - set(stage.columns_out.names) & set(table.column_names)


@pytest.mark.parametrize(
    ("step", "sink", "fault"),
    [
        (ExampleStage(columns_in=("lang",)), [], ("step", "lang", "column", "nothing")),
        (ExampleStage(columns_dropped=("lang",)), [], ("step", "lang", "column", "nothing")),
        (ExampleStage(columns_out=pa.schema([("question", pa.int32())])), [], ("step", "question", "int32", "string")),
        (ExampleStage(), [("score", pa.float32())], ("output", "score", "float", "nothing")),
        (ExampleStage(), [("question", pa.int32())], ("output", "question", "int32", "string")),
    ],
)
def test_columns_that_do_not_match_are_listed(step: Stage, sink: list[tuple[str, pa.DataType]], fault: tuple[str, ...]) -> None:
    expected = dict(zip(("stage", "column", "expected", "actual"), fault, strict=True))
    with raises("plan.stages-do-not-fit", faults=[expected]):
        check_columns([step], LOGS, pa.schema(sink))
    other = {"stage": "other", "column": "none", "expected": "column", "actual": "nothing"}
    with raises("plan.stages-do-not-fit", faults=[other, expected]):
        check_columns([ExampleStage(columns_in=("none",), name="other"), step], LOGS, pa.schema(sink))
