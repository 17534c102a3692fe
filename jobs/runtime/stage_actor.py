"""Runs any stage in a worker of Ray: an actor of a pool, or a task."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pyarrow as pa

from ragassay.jobs.clean_output import clean_errors, clean_process_output
from ragassay.jobs.runtime.counts import SILENT, Phase, Reporter
from ragassay.jobs.runtime.engine_metrics import count_engine_call
from ragassay.jobs.runtime.meter import Meter, task_meter
from ragassay.jobs.runtime.watchdog import Watchdog
from ragassay.pipeline.errors import RagassayError
from ragassay.pipeline.listener import listen
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages.stage import Stage, run_contained


class StageActor:
    """Runs one stage: sets it up, counts what it does, contains bad rows, honours a deadline, and lets no secret out.

    In a pool it listens to the stage's model, and ends its process where that hangs.
    """

    def __init__(
        self, stage: Stage, reporter: Reporter = SILENT, deadline: float | None = None, *, metrics: bool = True
    ) -> None:
        """Set the stage up, under the watchdog: loading may hang as well.

        Args:
            stage: The stage.
            reporter: Where counts go.
            deadline: Time (`time.time()`) from which on no row is let in: the result is an empty table of the same columns.
            metrics: Whether engine calls are counted as Ray metrics.
        """
        clean_process_output()
        self._stage, self._deadline = stage, deadline
        self._fault: RagassayError | None = None
        self._watchdog: Watchdog | None = None
        self._metrics = metrics
        if stage.replicas is None:
            self._meter = task_meter(reporter)
            with self._working():
                self._setup()
            return
        self._meter = Meter(reporter, _actor_id())
        self._meter.enter(Phase.LOADING)
        if reporter.board is not None:
            self._watchdog = self._watch(stage.replicas)
        listen(self)
        with self._working():
            self._setup()
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
            return self._meter.batch(lambda rows: run_contained(self._stage, rows), table)

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
            count_engine_call(self._stage.name, computed, reused, seconds, idle_seconds)

    def _setup(self) -> None:
        try:
            self._stage.setup()
        except RagassayError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error

    def _watch(self, replicas: Replicas) -> Watchdog | None:
        minutes = replicas.hang_minutes
        if minutes is None:
            return None
        hung = f"its engine had given no answer for {minutes:g} minutes (replicas.hang_minutes)"
        return Watchdog(minutes * 60, lambda: self._meter.end(hung))

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While the block runs, the watchdog waits for answers; an error that ends it leaves the process without secrets."""
        with clean_errors(), nullcontext() if self._watchdog is None else self._watchdog.working():
            yield


def run_stage(table: pa.Table, stage: Stage, reporter: Reporter = SILENT) -> pa.Table:
    """Run a light stage in a task."""
    return StageActor(stage, reporter)(table)


def _actor_id() -> str | None:
    """Id of the Ray actor in this process; None where there is none."""
    import ray

    return ray.get_runtime_context().get_actor_id() if ray.is_initialized() else None
