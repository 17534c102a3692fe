"""Collect the counts of a plan's workers: each worker reports its sums to the board, which the driver reads."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Protocol


class Phase(StrEnum):
    """What a worker does, in order of time."""

    LOADING = "loading"
    WARMING_UP = "warming up"
    WAITING = "waiting"
    SCORING = "scoring"


@dataclass(frozen=True)
class Counts:
    """Work done by one worker or by several.

    Attributes:
        phase: The latest phase that any of the workers has reached.
        rows: Rows that the stage has finished.
        sentences: Sentences of these rows, with or without a score.
        answered: Estimated number of sentences that have their answers, in batches that are not finished.
        tokens: Tokens computed.
    """

    phase: Phase = Phase.LOADING
    rows: int = 0
    sentences: int = 0
    answered: int = 0
    tokens: int = 0


def sum_counts(counts: Sequence[Counts]) -> Counts:
    """Sum the counts of several workers. The phase is the latest of their phases."""
    names = [column.name for column in fields(Counts) if column.name != "phase"]
    phase = max((worker.phase for worker in counts), key=list(Phase).index, default=Phase.LOADING)
    return Counts(phase, **{name: sum(getattr(worker, name) for worker in counts) for name in names})


class CountsBoard:
    """Board that stores the reports of a plan's workers. The last report of a worker that died remains."""

    def __init__(self, stages: int) -> None:
        """Start without reports.

        Args:
            stages: Number of stages in the plan.
        """
        self._workers: list[dict[str, Counts]] = [{} for _ in range(stages)]
        self._stage_of_id: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        self._worker_of_id: dict[str, str] = {}

    def report(self, stage: int, worker: str, actor: str | None, counts: Counts) -> None:
        """Store the sums of a worker, which only grow.

        Args:
            stage: Number of the worker's stage in the plan.
            worker: Id of the process; for an actor Ray's worker id, by which Ray names a process that dies in its constructor.
            actor: Id of the actor in the process, which stays the same when Ray restarts the actor; None for a task.
            counts: The sums.
        """
        self._workers[stage][worker] = counts
        if actor is not None:
            self._stage_of_id[actor] = self._stage_of_id[worker] = stage
            self._worker_of_id[actor] = self._worker_of_id[worker] = worker

    def report_end(self, actor: str, reason: str) -> None:
        """Store the reason why the process of an actor ends itself."""
        self._reasons[actor] = reason

    def sum_stages(self) -> list[Counts]:
        """Return the sums of each stage, in order."""
        return [sum_counts(list(workers.values())) for workers in self._workers]

    def find_death(self, text: str) -> tuple[int | None, str | None, str | None]:
        """Find the actor whose id or worker id a Ray error contains.

        Returns:
            Its stage, the reason that it last reported, and the id of its last process.
        """
        found_id = next((known_id for known_id in self._stage_of_id if known_id in text), "")
        return self._stage_of_id.get(found_id), self._reasons.get(found_id), self._worker_of_id.get(found_id)


class Board(Protocol):
    """What workers and the driver use of a board; see `CountsBoard`."""

    def __hash__(self) -> int:
        """Boards are keys of a cache."""

    def report(self, stage: int, worker: str, actor: str | None, counts: Counts) -> None:
        """See `CountsBoard`."""

    def report_end(self, actor: str, reason: str) -> None:
        """See `CountsBoard`."""

    def sum_stages(self) -> list[Counts]:
        """See `CountsBoard`."""

    def find_death(self, text: str) -> tuple[int | None, str | None, str | None]:
        """See `CountsBoard`."""
