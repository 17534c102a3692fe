"""Open the board of a plan: in this process, or in a Ray actor that all workers reach."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from ragassay.jobs.progress.counts import Board, Counts, CountsBoard
from ragassay.jobs.runtime.tasks import is_local

ANSWER_SECONDS = 5.0
"""Maximum time to wait for an answer of the board."""


@dataclass(frozen=True)
class RayBoard:
    """Board in a Ray actor, with the methods of `CountsBoard`. `report` does not wait; the others wait `ANSWER_SECONDS`.

    Attributes:
        actor: Handle of the actor.
    """

    actor: Any

    def report(self, stage: int, worker: str, actor: str | None, counts: Counts) -> None:
        """See `CountsBoard`."""
        self.actor.report.remote(stage, worker, actor, counts)

    def report_end(self, actor: str, reason: str) -> None:
        """See `CountsBoard`."""
        self._wait(self.actor.report_end.remote(actor, reason))

    def sum_stages(self) -> list[Counts]:
        """See `CountsBoard`."""
        sums: list[Counts] = self._wait(self.actor.sum_stages.remote())
        return sums

    def find_death(self, text: str) -> tuple[int | None, str | None, str | None]:
        """See `CountsBoard`."""
        death: tuple[int | None, str | None, str | None] = self._wait(self.actor.find_death.remote(text))
        return death

    def _wait(self, call: Any) -> Any:
        import ray

        return ray.get(call, timeout=ANSWER_SECONDS)


@contextmanager
def open_board(stages: int) -> Iterator[Board]:
    """Open a board: in this process if the plan runs there, otherwise in a Ray actor, which is stopped after the block.

    Args:
        stages: Number of stages in the plan.
    """
    if is_local():
        yield CountsBoard(stages)
        return
    import ray
    from ray.exceptions import RayError

    name = f"ragassay-counts-{token_hex(6)}"
    actor = ray.remote(CountsBoard).options(name=name, num_cpus=0, max_restarts=-1).remote(stages)
    try:
        yield RayBoard(actor)
    finally:
        with suppress(RayError):  # Ray has already ended: the error that ended it is the one to show
            ray.kill(actor)
