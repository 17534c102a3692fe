"""Counts of a plan's workers: each worker reports its sums to one named Ray actor, and the driver reads them there."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import StrEnum
from secrets import token_hex
from typing import Any

READ_SECONDS = 5.0
"""The driver waits no longer for the counts; a dying worker no longer for its last words to arrive."""


class Phase(StrEnum):
    """What a worker does, in the order in which it goes through them."""

    LOADING = "loading"
    WARMING_UP = "warming up"
    WAITING = "waiting"
    SCORING = "scoring"


@dataclass
class Counts:
    """What was done so far, by one worker or by several.

    Attributes:
        phase: The furthest that one of them is.
        rows: Rows that the stage has let go,
        sentences: and their sentences, whether they got a score or not.
        in_hand: Sentences of the batches under way,
        begun: and about how many of them have their answers.
        tokens: Tokens computed.
    """

    phase: Phase = Phase.LOADING
    rows: int = 0
    sentences: int = 0
    in_hand: int = 0
    begun: int = 0
    tokens: int = 0


def add_up(counts: Sequence[Counts]) -> Counts:
    """Counts of several workers as one; that of the furthest is the phase."""
    order = list(Phase)
    numbers = [column.name for column in fields(Counts) if column.name != "phase"]
    phase = max((worker.phase for worker in counts), key=order.index, default=Phase.LOADING)
    return Counts(phase, **{name: sum(getattr(worker, name) for worker in counts) for name in numbers})


class Board:
    """Holds what the workers of a plan report, as a Ray actor. A worker that dies leaves its last report."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._workers: dict[str, tuple[int, Counts]] = {}
        self._stages: dict[str, int] = {}
        self._reasons: dict[str, str] = {}

    def report(self, stage: int, worker: str, actor: str | None, counts: Counts) -> None:
        """Take a worker's sums, which only grow.

        Args:
            stage: Number of its stage in the plan.
            worker: The process.
            actor: Id of the actor in it, which stays the same when Ray restarts it; None for a task.
            counts: The sums.
        """
        self._workers[worker] = stage, counts
        if actor is not None:
            self._stages[actor] = stage

    def end(self, actor: str, reason: str) -> None:
        """Take the reason for which an actor's process ends itself."""
        self._reasons[actor] = reason

    def totals(self, stages: int) -> list[Counts]:
        """Sums of each stage, in order."""
        return [add_up([counts for of, counts in self._workers.values() if of == stage]) for stage in range(stages)]

    def death(self, text: str) -> tuple[int | None, str | None]:
        """Stage of the actor that an error of Ray names by its id, and the reason that its last process gave."""
        actor = next((actor for actor in self._stages if actor in text), None)
        return (None, None) if actor is None else (self._stages[actor], self._reasons.get(actor))


@dataclass(frozen=True)
class Reporter:
    """How a worker of a stage reaches the board; it reports nothing without one, and no work fails by it.

    Attributes:
        plan: The plan,
        stage: and the number of the stage in it.
        board: Handle of the board.
    """

    plan: str = ""
    stage: int = 0
    board: Any = field(default=None, compare=False)

    def report(self, worker: str, actor: str | None, counts: Counts) -> None:
        """Report sums, without waiting for their arrival."""
        if self.board is not None:
            with suppress(Exception):
                self.board.report.remote(self.stage, worker, actor, counts)

    def end(self, actor: str | None, reason: str) -> None:
        """Report why this process ends itself, and wait until that has arrived."""
        if self.board is not None and actor is not None:
            with suppress(Exception):
                import ray

                ray.get(self.board.end.remote(actor, reason), timeout=READ_SECONDS)


SILENT = Reporter()
"""Reports to nobody."""


class PlanCounts:
    """The board of one plan, as the driver sees it."""

    def __init__(self, stages: int) -> None:
        """Start the board; Ray is running.

        Args:
            stages: How many the plan has.
        """
        import ray

        self._plan, self._stages = token_hex(6), stages
        name = f"ragassay-counts-{self._plan}"
        self._board = ray.remote(Board).options(name=name, num_cpus=0, max_restarts=-1).remote()

    def reporter(self, stage: int) -> Reporter:
        """What a worker of a stage reports to."""
        return Reporter(self._plan, stage, self._board)

    def read(self) -> list[Counts]:
        """Sums of each stage, in order; nothing done where Ray can't be asked."""
        found = self._ask("totals", self._stages)
        return [Counts() for _ in range(self._stages)] if found is None else found

    def death(self, text: str) -> tuple[int | None, str | None]:
        """See `Board.death`."""
        return self._ask("death", text) or (None, None)

    def close(self) -> None:
        """End the board."""
        with suppress(Exception):
            import ray

            ray.kill(self._board)

    def _ask(self, method: str, argument: Any) -> Any:
        with suppress(Exception):  # Ray is starting, or ending: the next look sees more
            import ray

            return ray.get(getattr(self._board, method).remote(argument), timeout=READ_SECONDS)
        return None
