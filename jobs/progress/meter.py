"""Counts what the workers of a stage do, and puts it where the driver looks: into the store of Ray's head node.

A worker has one entry a stage, with sums that only grow, and writes it at most once a second within a batch: that takes half a
millisecond, needs no process of its own, and works from every node. What is lost or late is in the next one.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from secrets import token_hex
from threading import RLock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.listener import listen

NAMESPACE = "ragassay progress"

WRITE_SECONDS = 1.0
"""An entry is written again after so long at the earliest, unless a batch or a phase has ended."""


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


class Meter:
    """Counts for one stage in one process; the listener of the model in it."""

    def __init__(self, place: str) -> None:
        """Start counting.

        Args:
            place: Run and stage, see `tally`.
        """
        self._key = f"{place}/{token_hex(6)}"
        self._lock = RLock()
        self._counts = Counts()
        self._answered = self._charged = self._tokens = self._used = 0
        self._written = 0.0

    def enter(self, phase: Phase) -> None:
        """Tell what it does now."""
        with self._lock:
            self._counts.phase = phase
            self._write()

    def loaded(self) -> None:
        """See `pipeline.listener.Listener`."""
        self.enter(Phase.WARMING_UP)

    def answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`; what a model is tried with before the first batch does not count."""
        with self._lock:
            if self._counts.phase is Phase.SCORING:
                self._answered += prompts
                self._tokens += tokens
                if time.monotonic() - self._written > WRITE_SECONDS:
                    self._write()

    def batch(self, work: Callable[[pa.Table], pa.Table], table: pa.Table) -> pa.Table:
        """Have a batch done, and count it; several may be under way at once. What can't be counted is done all the same."""
        with suppress(Exception):
            self._begin(table)
        done = work(table)
        with suppress(Exception):
            self._end(table, done)
        return done

    def _begin(self, table: pa.Table) -> None:
        with self._lock:
            self._counts.in_hand += sentences_of(table)
            if self._counts.phase is not Phase.SCORING and table.num_rows:
                self.enter(Phase.SCORING)

    def _end(self, table: pa.Table, done: pa.Table) -> None:
        prompts, tokens = (max(0, after - before) for after, before in zip(used(done), used(table), strict=True))
        with self._lock:
            self._counts.in_hand -= sentences_of(table)
            self._counts.rows += table.num_rows
            self._counts.sentences += sentences_of(done)
            self._charged += prompts
            self._used += tokens
            self._write()

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        with self._lock:
            # A prompt asks about a sentence, or a window of the context or a whole response needs more of them, or fewer: what
            # was done tells how many.
            a_sentence = self._charged / self._counts.sentences if self._charged and self._counts.sentences else 1.0
            begun = round(max(0, self._answered - self._charged) / a_sentence)
            counts = Counts(**asdict(self._counts))
            counts.begun = min(begun, counts.in_hand)
            counts.tokens = max(self._tokens, self._used)
            return counts

    def _write(self) -> None:
        self._written = time.monotonic()
        with suppress(Exception):  # where there is no Ray, or it can't be reached: no work fails by that
            from ray.experimental.internal_kv import _internal_kv_put

            _internal_kv_put(self._key, json.dumps(asdict(self.counts)), namespace=NAMESPACE)


def sentences_of(table: pa.Table) -> int:
    """Sentences of a batch; 0 where it is not split yet."""
    if "sentences" not in table.column_names:
        return 0
    return int(pc.sum(pc.list_value_length(table["sentences"])).as_py() or 0)


def used(table: pa.Table) -> tuple[int, int]:
    """Prompts and computed tokens that the rows of a batch were charged so far."""
    if "usage" not in table.column_names:
        return 0, 0
    usage = table["usage"]  # a judge's is one a row
    usage = pc.list_flatten(usage) if pa.types.is_list(usage.type) else usage
    sums = (pc.sum(pc.struct_field(usage, name)).as_py() for name in ("prompts", "tokens_computed"))
    prompts, tokens = (int(found or 0) for found in sums)
    return prompts, tokens


def count_batch(table: pa.Table, call: Callable[..., pa.Table], arguments: Mapping[str, Any], place: str) -> pa.Table:
    """A stage that is a function, counted; see `jobs.plan.counted`."""
    return _meter(place).batch(lambda rows: call(rows, **arguments), table)


class CountedActor:
    """A stage that is an actor, counted; see `jobs.plan.counted`."""

    def __init__(self, call: Callable[..., Any], arguments: Mapping[str, Any], place: str) -> None:
        """Make the actor, and tell that it is being made."""
        self._meter = Meter(place)
        self._meter.enter(Phase.LOADING)
        listen(self._meter)
        self._actor = call(**arguments)
        self._meter.enter(Phase.WAITING)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Call it."""
        return self._meter.batch(self._actor, table)


@cache
def _meter(place: str) -> Meter:
    """The meter of a function's stage in this process."""
    return Meter(place)
