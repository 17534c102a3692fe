"""Counts what one worker does for a stage, and reports it."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from secrets import token_hex
from threading import RLock

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.runtime.counts import Counts, Phase, Reporter

REPORT_SECONDS = 1.0
"""A worker reports again after so long at the earliest, unless a batch or a phase has ended."""


class Meter:
    """Counts for one stage in one process."""

    def __init__(self, reporter: Reporter, actor: str | None = None) -> None:
        """Start counting.

        Args:
            reporter: Where sums go.
            actor: Id of the actor in this process; None for tasks.
        """
        self._reporter, self._actor, self._worker = reporter, actor, token_hex(6)
        self._lock = RLock()
        self._counts = Counts()
        self._answered = self._charged = self._tokens = self._used = 0
        self._reported = 0.0

    def enter(self, phase: Phase) -> None:
        """Tell what the worker does now."""
        with self._lock:
            self._counts.phase = phase
            self._report()

    def answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`; what a model is tried with before the first batch does not count."""
        with self._lock:
            if self._counts.phase is Phase.SCORING:
                self._answered += prompts
                self._tokens += tokens
                if time.monotonic() - self._reported > REPORT_SECONDS:
                    self._report()

    def batch(self, work: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        """Have a batch done, and count it; several may be under way at once. What can't be counted is done all the same."""
        with suppress(Exception):
            self._begin(table)
        done = work(table)
        with suppress(Exception):
            self._end(table, done)
        return done

    def end(self, reason: str) -> None:
        """Report why this process ends itself."""
        self._reporter.end(self._actor, reason)

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        with self._lock:
            # A prompt asks about a sentence, or a window of the context or a whole response needs more of them, or fewer: what
            # was done tells how many.
            sentences = self._counts.sentences
            prompts_a_sentence = self._charged / sentences if self._charged and sentences else 1.0
            begun = round(max(0, self._answered - self._charged) / prompts_a_sentence)
            tokens = max(self._tokens, self._used)
            return replace(self._counts, begun=min(begun, self._counts.in_hand), tokens=tokens)

    def _begin(self, table: pa.Table) -> None:
        with self._lock:
            self._counts.in_hand += count_sentences(table)
            if self._counts.phase is not Phase.SCORING and table.num_rows:
                self.enter(Phase.SCORING)

    def _end(self, table: pa.Table, done: pa.Table) -> None:
        prompts, tokens = (max(0, after - before) for after, before in zip(count_usage(done), count_usage(table), strict=True))
        with self._lock:
            self._counts.in_hand -= count_sentences(table)
            self._counts.rows += table.num_rows
            self._counts.sentences += count_sentences(done)
            self._charged += prompts
            self._used += tokens
            self._report()

    def _report(self) -> None:
        self._reported = time.monotonic()
        self._reporter.report(self._worker, self._actor, self.counts)


@cache
def task_meter(reporter: Reporter) -> Meter:
    """The meter of a light stage in this process, whose tasks come one after the other."""
    return Meter(reporter)


def count_sentences(table: pa.Table) -> int:
    """Sentences of a batch; 0 where it is not split yet."""
    if "sentences" not in table.column_names:
        return 0
    return int(pc.sum(pc.list_value_length(table["sentences"])).as_py() or 0)


def count_usage(table: pa.Table) -> tuple[int, int]:
    """Prompts and computed tokens that the rows of a batch were charged so far."""
    if "usage" not in table.column_names:
        return 0, 0
    usage = table["usage"]  # a judge's is one a row
    usage = pc.list_flatten(usage) if pa.types.is_list(usage.type) else usage
    sums = (pc.sum(pc.struct_field(usage, name)).as_py() for name in ("prompts", "tokens_computed"))
    prompts, tokens = (int(found or 0) for found in sums)
    return prompts, tokens
