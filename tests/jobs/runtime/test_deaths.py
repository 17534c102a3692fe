"""What a run says where the process of an actor ends again and again."""

from dataclasses import dataclass

import pytest
from ray.exceptions import OutOfMemoryError, RayActorError

from ragassay.jobs.ray_session import our_error
from ragassay.jobs.runtime.counts import Board, Counts
from ragassay.jobs.runtime.deaths import explain_death
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


def said(counts: Counted, error: BaseException) -> str | None:
    death = explain_death(error, STAGES, counts)  # type: ignore[arg-type]
    return None if death is None else str(death)


@pytest.mark.parametrize(("text", "reason"), [(CRASHED, "killed from outside"), (STARVED, "memory of its machine was used up")])
def test_the_error_names_the_stage_the_setting_and_the_reason(counts: Counted, text: str, reason: str) -> None:
    outer = RuntimeError("Ray Data wraps it")
    outer.__cause__ = RayActorError(None, DIED.format("bbb222", text))
    found = said(counts, outer)
    assert found is not None
    assert found.startswith("other: the process of a replica ended 4 times (replicas.restarts: 3)") and reason in found
    assert "the same command goes on" in found.lower()


def test_the_last_process_tells_why_it_ended_itself(counts: Counted) -> None:
    counts.board.end("aaa111", "its engine had given no answer for 1 minutes")
    found = said(counts, RayActorError("aaa111", DIED.format("", CRASHED)))
    assert found is not None and found.startswith("one: ") and "no answer for 1 minutes" in found


def test_other_processes_and_other_errors(counts: Counted) -> None:
    assert "a worker ended again and again" in (said(counts, OutOfMemoryError(STARVED)) or "")
    assert said(counts, ValueError("no process died")) is None
    slow = OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation")
    assert "the object store gave way" in str(our_error(slow)) and our_error(OSError("another")) is None
