"""How far a plan over rows is: a bar a stage, by sentences, from what its workers count."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from ragassay.jobs.progress.bar import Bar
from ragassay.jobs.progress.show import shown
from ragassay.jobs.runtime.counts import Counts, Phase, answer_of, open_board
from ragassay.pipeline.stages.stage import Stage


@contextmanager
def progress(stages: Sequence[Stage], rows: int, committed: int, console: Console) -> Iterator[Any]:
    """Show how far a block of code is that runs stages; Ray is running.

    Args:
        stages: In order; the first tells how many sentences a row has.
        rows: What is to be done, with what an earlier, broken run has done:
        committed: rows that this one does not do again.
        console: Where to; see `progress.show`.

    Yields:
        Handle of the board to which the workers of the stages report.
    """
    course = Course(stages, rows, committed)
    with open_board(len(stages)) as board, shown(lambda: course.bars(answer_of(board.totals.remote())), console):
        yield board
        course.ended = True


@dataclass
class Course:
    """What is known of a run under way.

    Attributes:
        stages: In order.
        rows: All that are to be done.
        committed: Those among them that were done before.
        ended: Whether every row is done, whatever was counted: a worker that died took its last count along.
    """

    stages: Sequence[Stage]
    rows: int
    committed: int
    ended: bool = False
    _done: dict[str, int] = field(default_factory=dict)

    def bars(self, counts: Sequence[Counts]) -> list[Bar]:
        """A bar for every stage with a unit.

        The number of all sentences is estimated from the rows that have been split so far. Rows that are done again, since a
        worker died, are counted again: so nothing exceeds its whole, and no bar goes back.

        Args:
            counts: Of every stage.
        """
        split = counts[0]
        known = split.rows >= self.rows - self.committed
        a_row = split.sentences / split.rows if split.rows else 0.0
        total = round(a_row * self.rows) if split.rows or known else None
        before = round(a_row * self.committed)
        about = not self.ended and (not known or self.committed > 0)
        pairs = zip(self.stages, counts, strict=True)
        return [self._bar(stage, of_stage, total, before, about=about) for stage, of_stage in pairs if stage.unit]

    def _bar(self, stage: Stage, counts: Counts, total: int | None, before: int, *, about: bool) -> Bar:
        here = counts.sentences + counts.begun
        done = max(self._done.get(stage.name, 0), before + here if total is None else min(before + here, total))
        total = max(total, done) if total is not None else total
        if self.ended:
            done = total = total or done
        self._done[stage.name] = done
        return Bar(phase_of(stage, counts).value, stage.name, done, total, stage.unit or "", about, here, counts.tokens)


def phase_of(stage: Stage, counts: Counts) -> Phase:
    """What a stage does, or waits for: a function has nothing to load."""
    if counts.phase is Phase.LOADING and stage.replicas is None:
        return Phase.WAITING
    return counts.phase
