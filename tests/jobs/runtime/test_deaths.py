"""What a run says where the process of an actor ends again and again."""

from dataclasses import dataclass

import pytest
from ray.exceptions import OutOfMemoryError, RayActorError

from ragassay.jobs.ray_session import our_error
from ragassay.jobs.runtime.counts import Board, Counts
from ragassay.jobs.runtime.deaths import explain_death
from ragassay.pipeline.errors import ModelError
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


@dataclass
class Counted:
    """The driver's side of a board that is in this process."""

    board: Board

    def death(self, text: str) -> tuple[int | None, str | None]:
        return self.board.death(text)


@pytest.fixture
def counts() -> Counted:
    board = Board()
    board.report(1, "w1", "aaa111", Counts())
    board.report(2, "w2", "bbb222", Counts())
    board.report(2, "w3", "bbb222", Counts())
    return Counted(board)


def death_of(counts: Counted, error: BaseException) -> ModelError | None:
    return explain_death(error, STAGES, counts)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "reason"), [(CRASHED, "killed from outside"), (STARVED, "memory of its machine was used up")])
def test_the_error_names_the_stage_the_setting_and_the_reason(counts: Counted, text: str, reason: str) -> None:
    outer = RuntimeError("Ray Data wraps it")
    outer.__cause__ = RayActorError(None, DIED.format("bbb222", text))
    found = death_of(counts, outer)
    assert found is not None and found.code == "model.replica-died"
    assert {name: found.fields[name] for name in ("stage", "times", "restarts")} == {
        "stage": "other",
        "times": 4,
        "restarts": 3,
    }
    assert reason in found.fields["reason"] and "run the same command again" in str(found).lower()


def test_the_last_process_tells_why_it_ended_itself(counts: Counted) -> None:
    counts.board.end("aaa111", "its engine had given no answer for 1 minutes")
    found = death_of(counts, RayActorError("aaa111", DIED.format("", CRASHED)))
    assert found is not None and found.fields["stage"] == "one" and "no answer for 1 minutes" in found.fields["reason"]


def test_other_processes_and_other_errors(counts: Counted) -> None:
    starved = death_of(counts, OutOfMemoryError(STARVED))
    assert starved is not None and starved.code == "model.worker-died"
    assert death_of(counts, ValueError("no process died")) is None
    slow = OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation")
    gone = our_error(slow)
    assert gone is not None and gone.code == "store.gave-way" and our_error(OSError("another")) is None
