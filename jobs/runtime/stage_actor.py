"""Runs any stage in a worker of Ray: an actor of a pool, or a task."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa

from ragassay.jobs.runtime.clean_output import clean_errors, clean_process_output
from ragassay.jobs.runtime.counts import Phase
from ragassay.jobs.runtime.meter import Meter, task_meter
from ragassay.jobs.runtime.metrics import count
from ragassay.jobs.runtime.watchdog import Watchdog
from ragassay.pipeline.errors import RagassayError
from ragassay.pipeline.listener import listen
from ragassay.pipeline.stages.stage import Stage, run_contained


class StageActor:
    """Runs one stage: sets it up, counts what it does, contains bad rows, honours a deadline, and lets no secret out.

    In a pool it listens to the stage's model, and in a run it ends its process where that hangs.
    """

    def __init__(
        self, stage: Stage, board: Any = None, number: int = 0, deadline: float | None = None, *, metrics: bool = True
    ) -> None:
        """Set the stage up, under the watchdog: loading may hang as well.

        Args:
            stage: The stage.
            board: Handle of the board to which counts go; None outside a run.
            number: Number of the stage in the plan.
            deadline: Time (`time.time()`) from which on no row is let in: the result is an empty table of the same columns.
            metrics: Whether engine calls are counted as Ray metrics.
        """
        clean_process_output()
        self._stage, self._deadline, self._metrics = stage, deadline, metrics
        self._is_run = board is not None
        self._fault: RagassayError | None = None
        self._watchdog: Watchdog | None = None
        if stage.replicas is None:
            self._meter = task_meter(board, number)
        else:
            self._meter = Meter(board, number, _actor_id())
            self._meter.enter(Phase.LOADING)
            self._watchdog = self._watch(stage.replicas.hang_minutes)
            listen(self)
        with self._working():
            try:
                stage.setup()
            except RagassayError as error:
                # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
                self._fault = error
        if stage.replicas is not None:
            self._meter.enter(Phase.WAITING)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Run the stage over a batch of rows.

        Raises:
            RagassayError: A model could not be loaded, or can't be used.
        """
        if self._fault is not None:
            raise self._fault
        if self._deadline is not None and time.time() >= self._deadline:
            return table.slice(0, 0)
        with self._working():
            done = self._meter.batch(lambda rows: run_contained(self._stage, rows), table)
        if self._is_run:
            count("ragassay_rows", done.num_rows, self._stage.name)
        return done

    def loaded(self) -> None:
        """See `pipeline.listener.Listener`."""
        if self._watchdog is not None:
            self._watchdog.heard()
        self._meter.enter(Phase.WARMING_UP)

    def answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`."""
        if self._watchdog is not None:
            self._watchdog.heard()
        self._meter.answered(prompts, tokens)

    def called(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        """See `pipeline.listener.Listener`."""
        if self._metrics:
            values = {"tokens_computed": computed, "tokens_reused": reused}
            for name, value in {**values, "engine_busy_seconds": seconds, "engine_idle_seconds": idle_seconds}.items():
                count(f"ragassay_{name}", value, self._stage.name)

    def _watch(self, minutes: float | None) -> Watchdog | None:
        if minutes is None or not self._is_run:
            return None
        hung = f"its engine had given no answer for {minutes:g} minutes (replicas.hang_minutes)"
        return Watchdog(minutes * 60, lambda: self._meter.end(hung))

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While the block runs, the watchdog waits for answers; an error that ends it leaves the process without secrets."""
        with clean_errors(), nullcontext() if self._watchdog is None else self._watchdog.working():
            yield


def run_stage(table: pa.Table, stage: Stage, board: Any = None, number: int = 0) -> pa.Table:
    """Run a light stage in a task."""
    return StageActor(stage, board, number)(table)


def _actor_id() -> str | None:
    """Id of the Ray actor in this process; None where there is none."""
    import ray

    return ray.get_runtime_context().get_actor_id() if ray.is_initialized() else None
