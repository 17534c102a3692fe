"""What a run says where the process of an actor ends again and again."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from ray.exceptions import OutOfMemoryError, RayActorError

from ragassay.jobs.guard import Guard, GuardedActor
from ragassay.jobs.ray_session import our_error
from ragassay.pipeline import listener
from ragassay.pipeline.slm.config import Replicas

DIED = "The actor died unexpectedly before finishing this task.\n\tclass_name: MapWorker(MapBatches({}))\n\tpid: 7\n{}"
CRASHED = "Worker unexpectedly exits with a connection error code 2. End of file."
STARVED = "Task was killed due to the node running low on memory."


class Adds:
    """An actor."""

    def __init__(self, more: int) -> None:
        self.more = more

    def __call__(self, table: pa.Table) -> pa.Table:
        listener.answered(1, 1)
        return pa.table({"x": [x + self.more for x in table["x"].to_pylist()]})


def made(guard: Guard, name: str, **replicas: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    arguments = guard.actor(name, Adds, {"more": 2}, Replicas(**replicas))
    return arguments["fn"], arguments["fn_constructor_kwargs"]


@pytest.mark.parametrize("minutes", [None, 1])
def test_a_guarded_actor_does_what_it_does_without(minutes: float | None) -> None:
    call, arguments = made(Guard(), "one", hang_minutes=minutes)
    actor = call(**arguments)
    try:
        assert isinstance(actor, GuardedActor)
        assert actor(pa.table({"x": [1, 2]}))["x"].to_pylist() == [3, 4]
    finally:
        listener._watchers.clear()
        if actor._watchdog is not None:
            actor._watchdog.stop()


@pytest.mark.parametrize(("text", "reason"), [(CRASHED, "killed from outside"), (STARVED, "memory of its machine was used up")])
def test_the_error_names_the_stage_the_setting_and_the_reason(text: str, reason: str) -> None:
    guard = Guard()
    made(guard, "one", restarts=0)
    name = made(guard, "o:ne", restarts=3)[0].__name__  # names that are the same as a class's
    died = RayActorError(None, DIED.format(name, text))
    outer = RuntimeError("Ray Data wraps it")
    outer.__cause__ = died
    said = str(guard.ended(outer))
    assert said.startswith("o:ne: the process of a replica ended 4 times (replicas.restarts: 3)") and reason in said
    assert "the same command goes on" in said.lower()


def test_other_processes_and_other_errors() -> None:
    guard = Guard()
    made(guard, "one")
    assert "a worker ended again and again" in str(guard.ended(OutOfMemoryError(STARVED)))
    assert guard.ended(ValueError("no process died")) is None
    slow = OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation")
    assert "the object store gave way" in str(our_error(slow)) and our_error(OSError("another")) is None
