"""The error of a run in which the process of an actor ends repeatedly."""

from pathlib import Path

import pytest
from ray.exceptions import OutOfMemoryError, RayActorError

from ragassay.jobs.progress.counts import Counts, CountsBoard
from ragassay.jobs.runtime import deaths
from ragassay.jobs.runtime.deaths import explain_death
from ragassay.jobs.runtime.ray_session import find_own_error
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.slm_served import ServedSlmStage
from ragassay.pipeline.stages.split import SplitStage

DIED = "The actor died unexpectedly.\n\tclass_name: MapWorker(MapBatches(StageActor))\n\tactor_id: {}\n{}"
CRASHED = "Worker unexpectedly exits with a connection error code 2. End of file."
STARVED = "Task was killed due to the node running low on memory."
STAGES = (
    SplitStage(("sentencizer", "en"), False),
    ServedSlmStage(Slm(name="first", replicas=Replicas(restarts=0))),
    ServedSlmStage(Slm(name="second", replicas=Replicas(restarts=3))),
)


@pytest.fixture
def board() -> CountsBoard:
    board = CountsBoard(3)
    for stage, worker, actor in ((1, "w1", "aaa111"), (2, "w2", "bbb222"), (2, "w3", "bbb222")):
        board.report(stage, worker, actor, Counts())
    return board


@pytest.mark.parametrize(("text", "reason"), [(CRASHED, "killed from outside"), (STARVED, "memory of its machine was used up")])
def test_the_error_names_the_stage_the_setting_and_the_reason(board: CountsBoard, text: str, reason: str) -> None:
    wrapper = RuntimeError("Ray Data wraps it")
    wrapper.__cause__ = RayActorError(None, DIED.format("bbb222", text))
    error = explain_death(wrapper, STAGES, board)
    assert error is not None and error.code == "model.replica-died" and reason in error.fields["reason"]
    assert (error.fields["stage"], error.fields["times"], error.fields["restarts"]) == ("second", 4, 3)


def test_a_worker_killed_in_its_constructor_is_named_by_its_worker_id(board: CountsBoard) -> None:
    workers = ["Selected to kill: (Task: pid=7, worker ID=w2)", "(Actor(aaa111): pid=8, worker ID=w1)"]
    text = "\n".join([STARVED, "Considered workers: [", *workers, "]"])
    error = explain_death(OutOfMemoryError(text), STAGES, board)
    assert error is not None and error.fields["stage"] == "second" and "memory" in error.fields["reason"]


def test_the_reason_is_the_one_that_the_last_process_reported(board: CountsBoard) -> None:
    board.report_end("aaa111", "its engine had given no answer for 1 minutes")
    error = explain_death(RayActorError("aaa111", DIED.format("", CRASHED)), STAGES, board)
    assert error is not None and error.fields["stage"] == "first" and "no answer for 1 minutes" in error.fields["reason"]


def test_without_a_board_the_reason_comes_from_the_error_of_ray() -> None:
    class EndedBoard(CountsBoard):
        def find_death(self, text: str) -> tuple[int | None, str | None, str | None]:
            raise RayActorError

    board = EndedBoard(3)
    error = explain_death(RayActorError(None, DIED.format("bbb222", STARVED)), STAGES, board)
    assert error is not None and error.code == "model.worker-died" and "memory" in error.fields["reason"]


def test_deaths_of_tasks_and_errors_without_a_death(board: CountsBoard) -> None:
    error = explain_death(OutOfMemoryError(STARVED), STAGES, board)
    assert error is not None and error.code == "model.worker-died"
    assert explain_death(ValueError("no process died"), STAGES, board) is None
    slow = OSError("When reading 'a' in bucket 'b': AWS Error SLOW_DOWN during GetObject operation")
    store_error = find_own_error(slow)
    assert store_error is not None and store_error.code == "store.gave-way" and find_own_error(OSError("another")) is None


def test_a_process_that_could_not_start_is_quoted(board: CountsBoard) -> None:
    text = "error raised in its creation task, pid=1\nTraceback (most recent call last):\nImportError: libcudart.so"
    error = explain_death(RayActorError(None, DIED.format("bbb222", text)), STAGES, board)
    assert error is not None and "it could not start: ImportError: libcudart.so" in error.fields["reason"]


def test_the_log_of_a_crashed_process_is_quoted_and_named(
    board: CountsBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "worker-w3-01000000-7.err"
    log.write_text("text of a log\n*** SIGSEGV received at time=1 on cpu 0 ***\n")
    monkeypatch.setattr(deaths, "find_worker_log", lambda worker: log if worker == "w3" else None)
    error = explain_death(RayActorError(None, DIED.format("bbb222", CRASHED)), STAGES, board)
    assert error is not None and f"its log is {log}" in error.fields["reason"]
    assert "*** SIGSEGV received" in error.fields["reason"] and "text of a log" not in str(error)
