"""An actor around any stage: what it does beside the stage's own work."""

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
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages.stage import Stage
from tests.jobs.runtime.test_meter import Heard
from tests.raises import EXAMPLE, raises

POOL = Replicas()


@dataclass
class Adds(Stage):
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
        listener.answered(1, 1)
        return table.append_column("y", pa.array([1 // x + self.more for x in table["x"].to_pylist()], pa.int64()))


def table(*values: int) -> pa.Table:
    nulls = pa.nulls(len(values), pa.string())
    return pa.table({"x": pa.array(values), "status": pa.array(["ok"] * len(values)), "error": nulls})


@pytest.fixture
def rows_counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    counted: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stage_actor, "count", lambda *values: counted.append(values))
    return counted


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    listener._listener.clear()


@pytest.mark.parametrize("minutes", [None, 1])
def test_it_does_what_the_stage_does_watched_or_not(minutes: float | None, rows_counted: list[tuple[Any, ...]]) -> None:
    actor = StageActor(Adds(2, Replicas(hang_minutes=minutes)), Heard())
    try:
        assert actor(table(1, 2))["y"].to_pylist() == [3, 2]
        assert rows_counted == [("ragassay_rows", 2, "adds")]
        assert (actor._watchdog is not None) is (minutes is not None)
    finally:
        if actor._watchdog is not None:
            actor._watchdog.stop()


def test_a_bad_row_becomes_data() -> None:
    done = StageActor(Adds(2))(table(1, 0, 2)).to_pylist()
    assert [row["y"] for row in done] == [3, None, 2] and [row["status"] for row in done] == ["ok", "error", "ok"]
    assert done[1]["error"].startswith("adds: ZeroDivisionError in ")


def test_a_model_that_cannot_be_loaded_is_the_error_of_each_call() -> None:
    actor = StageActor(Adds(2, broken=True))
    with raises("test.example"):
        actor(table(1))


def test_no_row_is_let_in_behind_a_deadline() -> None:
    late = StageActor(Adds(2), deadline=time.time() - 1)(table(1, 2))
    assert (late.num_rows, late.column_names) == (0, ["x", "status", "error"])
    assert StageActor(Adds(2), deadline=time.time() + 60)(table(1, 2)).num_rows == 2


def test_what_a_library_raises_leaves_a_worker_without_secrets() -> None:
    @dataclass
    class Leaks(Stage):
        replicas: Replicas | None = None

        name = "leaks"
        columns_in = ()
        columns_out = pa.schema([])

        def __call__(self, table: pa.Table) -> pa.Table:
            raise OSError("http://user:hunter2@host/x?token=hunter2 is gone")

    for call in (StageActor(Leaks(POOL)), partial(run_stage, stage=Leaks())):
        with pytest.raises(OSError, match="host/x") as info:
            call(table(1))
        assert "hunter2" not in str(info.value)
