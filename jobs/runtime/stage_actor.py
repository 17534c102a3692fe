"""Run any stage in a Ray worker: in an actor of a pool, or in a task."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pyarrow as pa

from ragassay.jobs.progress.counts import Board, Phase
from ragassay.jobs.runtime.clean_output import clean_errors, clean_process_output
from ragassay.jobs.runtime.metrics import add_to_counter
from ragassay.jobs.runtime.watchdog import Watchdog
from ragassay.jobs.runtime.worker_counts import WorkCounter, get_task_counter
from ragassay.pipeline.errors import RagassayError
from ragassay.pipeline.listener import set_listener
from ragassay.pipeline.stages.stage import Stage, run_contained


class StageActor:
    """Runner of one stage: sets it up, counts its work, contains bad rows, honors a deadline and removes secrets from errors.

    In a pool it listens to the model of the stage. In a run on Ray it ends its process if the stage hangs.
    """

    def __init__(
        self,
        stage: Stage,
        board: Board | None = None,
        number: int = 0,
        deadline: float | None = None,
        *,
        in_worker: bool = True,
        metrics: bool = True,
    ) -> None:
        """Set up the stage. The watchdog already runs, because loading can hang too.

        Args:
            stage: The stage.
            board: Board that receives the counts; None outside a run.
            number: Number of the stage in the plan.
            deadline: Time (`time.time()`) after which no row is processed: the result is an empty table with the same columns.
            in_worker: Whether this is a worker of Ray, and not the process of the command.
            metrics: Whether engine calls are counted as Ray metrics.
        """
        if in_worker:
            clean_process_output()
        self._stage, self._deadline, self._metrics = stage, deadline, metrics
        self._is_run = board is not None and in_worker
        self._setup_error: RagassayError | None = None
        self._watchdog: Watchdog | None = None
        if stage.replicas is None:
            self._counter = get_task_counter(board, number)
        else:
            self._counter = WorkCounter(board, number, *(_actor_and_worker_id() if in_worker else (None, None)))
            self._counter.enter_phase(Phase.LOADING)
            self._watchdog = self._start_watchdog(stage.replicas.hang_minutes)
            set_listener(self)
        with self._supervise():
            try:
                stage.setup()
            except RagassayError as error:
                # Of an error in a constructor, Ray passes on only the text. An error in a call keeps its class.
                self._setup_error = error
        if stage.replicas is not None:
            self._counter.enter_phase(Phase.WAITING)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Run the stage on a batch of rows.

        Raises:
            RagassayError: A model can't be loaded or used.
        """
        if self._setup_error is not None:
            raise self._setup_error
        if self._deadline is not None and time.time() >= self._deadline:
            return table.slice(0, 0)
        with self._supervise():
            result = self._counter.run_batch(lambda rows: run_contained(self._stage, rows), table)
        if self._is_run:
            add_to_counter("ragassay_rows", result.num_rows, self._stage.name)
        return result

    def on_loaded(self) -> None:
        """See `pipeline.listener.Listener`."""
        if self._watchdog is not None:
            self._watchdog.note_answer()
        self._counter.enter_phase(Phase.WARMING_UP)

    def on_answered(self, prompts: int, tokens: int) -> None:
        """See `pipeline.listener.Listener`."""
        if self._watchdog is not None:
            self._watchdog.note_answer()
        self._counter.answered(prompts, tokens)

    def on_call(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        """See `pipeline.listener.Listener`."""
        if self._metrics:
            values = {"tokens_computed": computed, "tokens_reused": reused}
            for name, value in {**values, "engine_busy_seconds": seconds, "engine_idle_seconds": idle_seconds}.items():
                add_to_counter(f"ragassay_{name}", value, self._stage.name)

    def _start_watchdog(self, minutes: float | None) -> Watchdog | None:
        if minutes is None or not self._is_run:
            return None
        reason = f"its engine had given no answer for {minutes:g} minutes (replicas.hang_minutes)"
        return Watchdog(minutes * 60, lambda: self._counter.report_end(reason))

    @contextmanager
    def _supervise(self) -> Iterator[None]:
        """Run the block under the watchdog, and remove secrets from an error that ends it."""
        with clean_errors(), nullcontext() if self._watchdog is None else self._watchdog.watch():
            yield


def run_stage(table: pa.Table, stage: Stage, board: Board | None = None, number: int = 0) -> pa.Table:
    """Run a light stage in a task."""
    return StageActor(stage, board, number)(table)


def _actor_and_worker_id() -> tuple[str | None, str | None]:
    """Return the ids of the Ray actor in this process and of the process; None outside an actor."""
    import ray

    if not ray.is_initialized():
        return None, None
    context = ray.get_runtime_context()
    return context.get_actor_id(), context.get_worker_id()
