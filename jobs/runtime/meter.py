"""Counts what one worker does for a stage of a plan, and reports it."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from secrets import token_hex
from threading import RLock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.runtime.counts import Counts, Phase, answer_of

REPORT_SECONDS = 1.0
"""A worker reports again after so long at the earliest, unless a batch or a phase has ended."""


class Meter:
    """Counts for one stage in one process; without a board no batch is counted."""

    def __init__(self, board: Any, stage: int, actor: str | None = None) -> None:
        """Start counting.

        Args:
            board: Handle of the board of the plan; None outside a run.
            stage: Number of the stage in the plan.
            actor: Id of the actor in this process; None for tasks.
        """
        self._board, self._stage, self._actor, self._worker = board, stage, actor, token_hex(6)
        self._lock = RLock()
        self._phase = Phase.LOADING
        self._rows = self._sentences = self._in_hand = self._answered = self._charged = self._tokens = 0
        self._reported = 0.0

    def enter(self, phase: Phase) -> None:
        """Report what the worker does now."""
        with self._lock:
            self._phase = phase
            self._report()

    def answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`; what a model is tried with before the first batch does not count."""
        with self._lock:
            if self._phase is Phase.SCORING:
                self._answered += prompts
                self._tokens += tokens
                if time.monotonic() - self._reported > REPORT_SECONDS:
                    self._report()

    def batch(self, work: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        """Have a batch done, and count it; several may be under way at once."""
        if self._board is None:
            return work(table)
        begun = count_sentences(table)
        with self._lock:
            self._in_hand += begun
            if self._phase is not Phase.SCORING and table.num_rows:
                self.enter(Phase.SCORING)
        done = work(table)
        with self._lock:
            self._in_hand -= begun
            self._rows += table.num_rows
            self._sentences += count_sentences(done)
            self._charged += max(0, count_prompts(done) - count_prompts(table))
            self._report()
        return done

    def end(self, reason: str) -> None:
        """Report why this process ends itself, and wait until that has arrived."""
        answer_of(self._board.end.remote(self._actor, reason))

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        with self._lock:
            # A prompt asks about a sentence, or a window of the context or a whole response needs more of them, or fewer: what
            # was done tells how many.
            prompts_a_sentence = self._charged / self._sentences if self._charged and self._sentences else 1.0
            begun = round(max(0, self._answered - self._charged) / prompts_a_sentence)
            return Counts(self._phase, self._rows, self._sentences, min(begun, self._in_hand), self._tokens)

    def _report(self) -> None:
        self._reported = time.monotonic()
        if self._board is not None:
            with suppress(Exception):  # whatever Ray raises while a cluster ends: no work fails by its counts
                self._board.report.remote(self._stage, self._worker, self._actor, self.counts)


@cache
def task_meter(board: Any, stage: int) -> Meter:
    """The meter of a light stage in this process, whose tasks come one after the other."""
    return Meter(board, stage)


def count_sentences(table: pa.Table) -> int:
    """Sentences of a batch; 0 where it is not split yet."""
    if "sentences" not in table.column_names:
        return 0
    return int(pc.sum(pc.list_value_length(table["sentences"])).as_py() or 0)


def count_prompts(table: pa.Table) -> int:
    """Prompts that the rows of a batch were charged so far."""
    if "usage" not in table.column_names:
        return 0
    usage = table["usage"]  # a judge's is one a row
    usage = pc.list_flatten(usage) if pa.types.is_list(usage.type) else usage
    return int(pc.sum(pc.struct_field(usage, "prompts")).as_py() or 0)
