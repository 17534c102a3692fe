"""Try the engines of a job on the sample for a limited time, all at once as in the job: their start-up and throughput."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.escalation import EscalationConfig
from ragassay.jobs.config.job import Job
from ragassay.jobs.runtime.dataflow import start_actor
from ragassay.jobs.runtime.ray_session import ray_session
from ragassay.jobs.runtime.resources import compute_needed_resources
from ragassay.jobs.scoring.stages import make_stages

FIRST_ROWS = 4
"""Rows of the first call."""

MAX_GROWING_SECONDS = 2.0
"""The next call is twice as large unless a call took longer, so that calls end close to the deadline."""


@dataclass(frozen=True)
class Trial:
    """Measured speed of the engine of one SLM or uncertainty model.

    Attributes:
        startup_seconds: Seconds until the engine was ready.
        tokens_per_second: Tokens that one busy replica computed per second.
        replicas: Number of replicas in the job.
    """

    startup_seconds: float
    tokens_per_second: float
    replicas: int


NOT_TRIED = Trial(0.0, 0.0, 0)


def try_engines(job: Job, segments: Sequence[pa.Table], seconds: float) -> tuple[float, dict[str, Trial]]:
    """Start one replica of every model on this machine at the same time, and measure each on rows of the sample.

    Args:
        job: The job.
        segments: Rows after the stage `split`.
        seconds: Maximum duration, with the start of Ray and of the engines; 0 tries nothing.

    Returns:
        Seconds that Ray took to start, and the trial of each model. No trials if the job has no local model, or if an engine
        did not finish a call in time.

    Raises:
        ModelError: A model can't be loaded.
    """
    if not (job.members.local_pools and seconds):
        return 0.0, {}
    started_at = time.perf_counter()
    with ray_session(job.runtime, *compute_needed_resources(make_stages(job))):
        import ray

        ray_seconds = time.perf_counter() - started_at
        # Served models are not tried: their requests cost money.
        actors = {stage.name: start_actor(stage) for stage in make_stages(job) if stage.name in job.members.local_pools}
        table = pa.concat_tables(segments)
        starting = {actor.__ray_ready__.remote(): name for name, actor in actors.items()}
        startup_seconds: dict[str, float] = {}
        while starting:
            ready, _ = ray.wait(list(starting), timeout=max(0.0, started_at + seconds - time.perf_counter()))
            if not ready:
                return ray_seconds, {}
            ray.get(ready[0])
            startup_seconds[starting.pop(ready[0])] = time.perf_counter() - started_at - ray_seconds
        rates = _measure_rates(ray, actors, table, started_at + seconds)
    if not all(rates.values()):
        return ray_seconds, {}
    return ray_seconds, {name: Trial(startup_seconds[name], rates[name], job.members.local_pools[name].max) for name in actors}


def try_judge(job: Job, segments: Sequence[pa.Table], seconds: float) -> dict[str, Trial]:
    """Try the judge of the cascade if it has a local engine; as in a run, after the other engines have ended."""
    judge = job.escalation.judge
    if judge is None:
        return {}
    members = job.members.model_copy(update={"slms": (judge,), "uncertainty": (), "rerank": None, "detectors": ()})
    judge_job = job.model_copy(update={"members": members, "escalation": EscalationConfig()})
    return try_engines(judge_job, segments, seconds)[1]


def _measure_rates(ray: Any, actors: dict[str, Any], table: pa.Table, deadline: float) -> dict[str, float]:
    """Return the tokens that each engine computes per busy second, while all of them are busy; 0 if no call ends in time."""
    tokens, busy_seconds = dict.fromkeys(actors, 0), dict.fromkeys(actors, 0.0)
    next_row = dict.fromkeys(actors, 0)
    batch_rows = dict.fromkeys(actors, FIRST_ROWS)
    running: dict[Any, str] = {}

    def start_call(name: str) -> None:
        batch = table.slice(next_row[name], batch_rows[name])
        next_row[name] += batch_rows[name]
        if batch.num_rows and time.perf_counter() < deadline:
            running[actors[name].__call__.remote(batch)] = name

    for name in actors:
        start_call(name)
    while running:
        done, _ = ray.wait(list(running), timeout=max(0.0, deadline - time.perf_counter()))
        if not done:
            break
        name = running.pop(done[0])
        usage = [entry for row in ray.get(done[0])["usage"].to_pylist() for entry in row or ()]
        call_seconds = sum(entry["engine_seconds"] for entry in usage)
        tokens[name] += sum(entry["tokens_computed"] for entry in usage)
        busy_seconds[name] += call_seconds
        batch_rows[name] *= 1 if call_seconds > MAX_GROWING_SECONDS else 2
        start_call(name)
    return {name: tokens[name] / busy_seconds[name] if busy_seconds[name] else 0.0 for name in actors}
