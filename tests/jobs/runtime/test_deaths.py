"""What a run says where the process of an actor ends again and again."""

from types import SimpleNamespace

import pytest
from ray.exceptions import OutOfMemoryError, RayActorError

from ragassay.jobs.runtime import deaths
from ragassay.jobs.runtime.counts import Board, Counts
from ragassay.jobs.runtime.deaths import explain_death
from ragassay.jobs.runtime.ray_session import our_error
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.split import Split

DIED = "The actor died unexpectedly.\n\tclass_name: MapWorker(MapBatches(StageActor))\n\tactor_id: {}\n{}"
CRASHED = "Worker unexpectedly exits with a connection error code 2. End of file."
STARVED = "Task was killed due to the node running low on memory."
STAGES = (
    Split(("sentencizer", "en"), False),
    ServedScorer(Slm(name="one", replicas=Replicas(restarts=0))),
    ServedScorer(Slm(name="other", replicas=Replicas(restarts=3))),
)


class Handle:
    """A handle of a board that is in this process."""

    def __init__(self) -> None:
        self.board = Board(3)
        self.death = SimpleNamespace(remote=self.board.death)
        for stage, worker, actor in ((1, "w1", "aaa111"), (2, "w2", "bbb222"), (2, "w3", "bbb222")):
            self.board.report(stage, worker, actor, Counts())


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    monkeypatch.setattr(deaths, "answer_of", lambda answer: answer)
    return Handle()


@pytest.mark.parametrize(("text", "reason"), [(CRASHED, "killed from outside"), (STARVED, "memory of its machine was used up")])
def test_the_error_names_the_stage_the_setting_and_the_reason(handle: Handle, text: str, reason: str) -> None:
    outer = RuntimeError("Ray Data wraps it")
    outer.__cause__ = RayActorError(None, DIED.format("bbb222", text))
    found = explain_death(outer, STAGES, handle)
    assert found is not None and found.code == "model.replica-died" and reason in found.fields["reason"]
    assert (found.fields["stage"], found.fields["times"], found.fields["restarts"]) == ("other", 4, 3)


def test_the_last_process_tells_why_it_ended_itself(handle: Handle) -> None:
    handle.board.end("aaa111", "its engine had given no answer for 1 minutes")
    found = explain_death(RayActorError("aaa111", DIED.format("", CRASHED)), STAGES, handle)
    assert found is not None and found.fields["stage"] == "one" and "no answer for 1 minutes" in found.fields["reason"]


def test_the_board_may_be_gone_as_well(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RayActorError

    monkeypatch.setattr(deaths, "answer_of", fail)
    found = explain_death(RayActorError(None, DIED.format("bbb222", STARVED)), STAGES, handle)
    assert found is not None and found.code == "model.worker-died" and "memory" in found.fields["reason"]


def test_other_processes_and_other_errors(handle: Handle) -> None:
    found = explain_death(OutOfMemoryError(STARVED), STAGES, handle)
    assert found is not None and found.code == "model.worker-died"
    assert explain_death(ValueError("no process died"), STAGES, handle) is None
    slow = OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation")
    gone = our_error(slow)
    assert gone is not None and gone.code == "store.gave-way" and our_error(OSError("another")) is None
