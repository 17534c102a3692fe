"""Count the work of one worker for one stage of a plan, and report it to the board."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from secrets import token_hex
from threading import RLock

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.progress.counts import Board, Counts, Phase

REPORT_SECONDS = 1.0
"""Minimum time between two reports of a worker. The end of a batch or of a phase is reported at once."""


class WorkCounter:
    """Counter for one stage in one process. Without a board, batches are not counted."""

    def __init__(self, board: Board | None, stage: int, actor: str | None = None, worker: str | None = None) -> None:
        """Start counting.

        Args:
            board: The plan's board; None outside a run.
            stage: Number of the stage in the plan.
            actor: Id of the actor in this process; None for tasks.
            worker: Ray's id of this process; None for tasks, because several of their counters may be in one process.
        """
        self._board, self._stage, self._actor, self._worker = board, stage, actor, worker or token_hex(6)
        self._lock = RLock()
        self._phase = Phase.LOADING
        self._rows = self._sentences = self._open_sentences = self._tokens = 0
        self._answered_prompts = self._charged_prompts = 0
        self._reported_at = 0.0

    def enter_phase(self, phase: Phase) -> None:
        """Report that the worker enters a phase."""
        with self._lock:
            self._phase = phase
            self._report()

    def answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`. Trial prompts before the first batch are not counted."""
        with self._lock:
            if self._phase is Phase.SCORING:
                self._answered_prompts += prompts
                self._tokens += tokens
                if time.monotonic() - self._reported_at > REPORT_SECONDS:
                    self._report()

    def run_batch(self, work: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        """Run the work on a batch and count it. Several batches may run at the same time."""
        if self._board is None:
            return work(table)
        sentences = count_sentences(table)
        with self._lock:
            self._open_sentences += sentences
            if self._phase is not Phase.SCORING and table.num_rows:
                self.enter_phase(Phase.SCORING)
        result = work(table)
        with self._lock:
            self._open_sentences -= sentences
            self._rows += table.num_rows
            self._sentences += count_sentences(result)
            self._charged_prompts += max(0, count_prompts(result) - count_prompts(table))
            self._report()
        return result

    def report_end(self, reason: str) -> None:
        """Report why this process ends itself, and wait until the report has arrived."""
        assert self._board is not None and self._actor is not None
        self._board.report_end(self._actor, reason)

    @property
    def counts(self) -> Counts:
        """The work done."""
        with self._lock:
            # A sentence can take several prompts (windows of the context), or less than one (a whole response is one prompt).
            # The ratio comes from the finished batches.
            has_ratio = self._charged_prompts and self._sentences
            prompts_per_sentence = self._charged_prompts / self._sentences if has_ratio else 1.0
            answered = round(max(0, self._answered_prompts - self._charged_prompts) / prompts_per_sentence)
            return Counts(self._phase, self._rows, self._sentences, min(answered, self._open_sentences), self._tokens)

    def _report(self) -> None:
        self._reported_at = time.monotonic()
        if self._board is not None:
            with suppress(Exception):  # Ray raises many errors while a cluster ends; counts must not make the work fail
                self._board.report(self._stage, self._worker, self._actor, self.counts)


@cache
def get_task_counter(board: Board | None, stage: int) -> WorkCounter:
    """Return the counter of a light stage in this process, which runs the stage's tasks one after the other."""
    return WorkCounter(board, stage)


def count_sentences(table: pa.Table) -> int:
    """Count the sentences of a batch; 0 before the split stage."""
    if "sentences" not in table.column_names:
        return 0
    return int(pc.sum(pc.list_value_length(table["sentences"])).as_py() or 0)


def count_prompts(table: pa.Table) -> int:
    """Count the prompts that the rows of a batch were charged for."""
    if "usage" not in table.column_names:
        return 0
    usage = table["usage"]  # a judge writes one struct per row, the other stages a list of structs
    usage = pc.list_flatten(usage) if pa.types.is_list(usage.type) else usage
    return int(pc.sum(pc.struct_field(usage, "prompts")).as_py() or 0)
