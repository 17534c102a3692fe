"""The actor that runs a stage."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.runtime import stage_actor
from ragassay.jobs.runtime.stage_actor import StageActor, run_stage
from ragassay.pipeline import listener
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.stages.stage import Stage
from tests.jobs.runtime.test_worker_counts import FakeBoard
from tests.raises import EXAMPLE, raises

POOL = Replicas()


@dataclass
class AddingStage(Stage):
    more: int
    replicas: Replicas = POOL
    broken: bool = False

    name = "adds"
    columns_in = ("x", "status", "error")
    columns_out = pa.schema([("y", pa.int64()), ("status", pa.string()), ("error", pa.string())])
    fault_prefix = "adds"

    def setup(self) -> None:
        if self.broken:
            raise ModelError(EXAMPLE, text="no such model")

    def __call__(self, table: pa.Table) -> pa.Table:
        listener.report_answered(1, 1)
        return table.append_column("y", pa.array([1 // x + self.more for x in table["x"].to_pylist()], pa.int64()))


def table(*values: int) -> pa.Table:
    nulls = pa.nulls(len(values), pa.string())
    return pa.table({"x": pa.array(values), "status": pa.array(["ok"] * len(values)), "error": nulls})


@pytest.fixture
def metric_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    counts: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stage_actor, "add_to_counter", lambda *values: counts.append(values))
    return counts


@pytest.fixture(autouse=True)
def stop_listening() -> Iterator[None]:
    yield
    listener._listener.clear()


@pytest.mark.parametrize("minutes", [None, 1])
def test_the_actor_returns_the_result_of_the_stage_with_and_without_watchdog(
    minutes: float | None, metric_calls: list[tuple[Any, ...]]
) -> None:
    actor = StageActor(AddingStage(2, Replicas(hang_minutes=minutes)), FakeBoard())
    try:
        assert actor(table(1, 2))["y"].to_pylist() == [3, 2]
        assert metric_calls == [("ragassay_rows", 2, "adds")]
        assert (actor._watchdog is not None) is (minutes is not None)
    finally:
        if actor._watchdog is not None:
            actor._watchdog.stop()


def test_a_bad_row_becomes_data() -> None:
    done = StageActor(AddingStage(2))(table(1, 0, 2)).to_pylist()
    assert [row["y"] for row in done] == [3, None, 2] and [row["status"] for row in done] == ["ok", "error", "ok"]
    assert done[1]["error"].startswith("adds: ZeroDivisionError in ")


def test_a_model_that_cannot_be_loaded_is_the_error_of_each_call() -> None:
    actor = StageActor(AddingStage(2, broken=True))
    with raises("test.example"):
        actor(table(1))


def test_after_the_deadline_no_row_is_processed() -> None:
    late = StageActor(AddingStage(2), deadline=time.time() - 1)(table(1, 2))
    assert (late.num_rows, late.column_names) == (0, ["x", "status", "error"])
    assert StageActor(AddingStage(2), deadline=time.time() + 60)(table(1, 2)).num_rows == 2


def test_an_error_of_a_library_leaves_the_worker_without_secrets() -> None:
    @dataclass
    class LeakingStage(Stage):
        replicas: Replicas | None = None

        name = "leaks"
        columns_in = ()
        columns_out = pa.schema([])

        def __call__(self, table: pa.Table) -> pa.Table:
            raise OSError("http://user:hunter2@host/x?token=hunter2 is gone")

    for call in (StageActor(LeakingStage(POOL)), partial(run_stage, stage=LeakingStage())):
        with pytest.raises(OSError, match="host/x") as info:
            call(table(1))
        assert "hunter2" not in str(info.value)
