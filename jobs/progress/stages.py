"""Show the progress of stages over rows: one bar per stage, counted in sentences, from the reports of the workers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from ragassay.jobs.progress.bar_state import Bar
from ragassay.jobs.progress.counts import Board, Counts, Phase
from ragassay.jobs.progress.show import show_progress
from ragassay.pipeline.stages.stage import Stage


@contextmanager
def show_stages(stages: Sequence[Stage], rows: int, committed: int, board: Board, console: Console) -> Iterator[None]:
    """Show the progress of a block that runs stages.

    Args:
        stages: The stages, in order; the first one determines the number of sentences per row.
        rows: Rows to do, including the committed ones.
        committed: Rows that an earlier, interrupted run has committed; this run does not process them.
        board: The board to which the workers of the stages report.
        console: Where to show it; see `progress.show`.
    """
    stage_progress = StageProgress(stages, rows, committed)
    with show_progress(lambda: stage_progress.make_bars(board.sum_stages()), console):
        yield
        stage_progress.is_finished = True


@dataclass
class StageProgress:
    """Progress of the stages of a run.

    Attributes:
        stages: The stages, in order.
        rows: Rows to do, including the committed ones.
        committed: Rows that an earlier run has committed.
        is_finished: Whether every row is done, whatever the counts are: a worker that died did not report its last count.
    """

    stages: Sequence[Stage]
    rows: int
    committed: int
    is_finished: bool = False
    _done: dict[str, int] = field(default_factory=dict)

    def make_bars(self, counts: Sequence[Counts]) -> list[Bar]:
        """Make a bar for every stage that has a unit.

        The total number of sentences is estimated from the rows that are already split. Rows that are processed again because a
        worker died are counted again. Therefore a bar is limited to its total and never goes back.

        Args:
            counts: Counts of every stage, in order.
        """
        split = counts[0]
        is_split = split.rows >= self.rows - self.committed
        sentences_per_row = split.sentences / split.rows if split.rows else 0.0
        total = round(sentences_per_row * self.rows) if split.rows or is_split else None
        before = round(sentences_per_row * self.committed)
        is_estimate = not self.is_finished and (not is_split or self.committed > 0)
        pairs = zip(self.stages, counts, strict=True)
        return [
            self._make_bar(stage, stage_counts, total, before, is_estimate=is_estimate)
            for stage, stage_counts in pairs
            if stage.unit
        ]

    def _make_bar(self, stage: Stage, counts: Counts, total: int | None, before: int, *, is_estimate: bool) -> Bar:
        done_here = counts.sentences + counts.answered
        done = max(self._done.get(stage.name, 0), before + done_here if total is None else min(before + done_here, total))
        total = max(total, done) if total is not None else total
        if self.is_finished:
            done = total = total or done
        self._done[stage.name] = done
        phase = find_phase(stage, counts).value
        return Bar(phase, stage.name, done, total, stage.unit or "", is_estimate, done_here, counts.tokens)


def find_phase(stage: Stage, counts: Counts) -> Phase:
    """Return the phase of a stage. A stage without replicas loads nothing: until its first row it waits."""
    if counts.phase is Phase.LOADING and stage.replicas is None:
        return Phase.WAITING
    return counts.phase
