"""Counts of a plan's workers: each worker reports its sums to one Ray actor, the board of the plan; the driver reads it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from secrets import token_hex
from typing import Any

ANSWER_SECONDS = 5.0
"""Nobody waits longer for an answer of the board."""


class Phase(StrEnum):
    """What a worker does, in the order in which it goes through them."""

    LOADING = "loading"
    WARMING_UP = "warming up"
    WAITING = "waiting"
    SCORING = "scoring"


@dataclass(frozen=True)
class Counts:
    """What was done so far, by one worker or by several.

    Attributes:
        phase: The furthest that one of them is.
        rows: Rows that the stage has let go,
        sentences: and their sentences, whether they got a score or not.
        begun: About how many sentences of the batches under way have their answers.
        tokens: Tokens computed.
    """

    phase: Phase = Phase.LOADING
    rows: int = 0
    sentences: int = 0
    begun: int = 0
    tokens: int = 0


def add_up(counts: Sequence[Counts]) -> Counts:
    """Counts of several workers as one; that of the furthest is the phase."""
    names = [column.name for column in fields(Counts) if column.name != "phase"]
    phase = max((worker.phase for worker in counts), key=list(Phase).index, default=Phase.LOADING)
    return Counts(phase, **{name: sum(getattr(worker, name) for worker in counts) for name in names})


class Board:
    """Holds what the workers of a plan report, as a Ray actor. A worker that dies leaves its last report."""

    def __init__(self, stages: int) -> None:
        """Know nothing yet of so many stages."""
        self._workers: list[dict[str, Counts]] = [{} for _ in range(stages)]
        self._actors: dict[str, int] = {}
        self._reasons: dict[str, str] = {}

    def report(self, stage: int, worker: str, actor: str | None, counts: Counts) -> None:
        """Take a worker's sums, which only grow.

        Args:
            stage: Number of its stage in the plan.
            worker: The process.
            actor: Id of the actor in it, which stays the same when Ray restarts it; None for a task.
            counts: The sums.
        """
        self._workers[stage][worker] = counts
        if actor is not None:
            self._actors[actor] = stage

    def end(self, actor: str, reason: str) -> None:
        """Take the reason for which an actor's process ends itself."""
        self._reasons[actor] = reason

    def totals(self) -> list[Counts]:
        """Sums of each stage, in order."""
        return [add_up(list(workers.values())) for workers in self._workers]

    def death(self, text: str) -> tuple[int | None, str | None]:
        """Stage of the actor that an error of Ray names by its id, and the reason that its last process gave."""
        actor = next((actor for actor in self._actors if actor in text), "")
        return self._actors.get(actor), self._reasons.get(actor)


@contextmanager
def open_board(stages: int) -> Iterator[Any]:
    """The handle of a board for a plan of so many stages, while a block of code runs it; Ray is running."""
    import ray
    from ray.exceptions import RayError

    name = f"ragassay-counts-{token_hex(6)}"
    board = ray.remote(Board).options(name=name, num_cpus=0, max_restarts=-1).remote(stages)
    try:
        yield board
    finally:
        with suppress(RayError):  # Ray has ended before: what ended it is the error to see
            ray.kill(board)


def answer_of(call: Any) -> Any:
    """The board's answer.

    Args:
        call: What a method of its handle gave.

    Raises:
        RayError: There is none in time.
    """
    import ray

    return ray.get(call, timeout=ANSWER_SECONDS)
