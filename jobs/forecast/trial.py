"""A short run of a job's engines on the sample, side by side as in the job: how long they take to start, how fast they are."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.escalation import EscalationConfig
from ragassay.jobs.config.job import Job
from ragassay.jobs.runtime.dataflow import compute_needed_resources, start_actor
from ragassay.jobs.runtime.ray_session import ray_session
from ragassay.jobs.scoring.stages import make_stages

FIRST_ROWS = 8
LONG_ENOUGH = 2.0
"""Seconds of a call from which on the next one is not made larger: calls end close to the time they were given."""


@dataclass(frozen=True)
class Trial:
    """How the engine of one SLM, or of one reading, did.

    Attributes:
        start_up: Seconds until it could be asked.
        tokens_per_second: Tokens computed a second of one busy replica.
        replicas: Replicas that the job has.
    """

    start_up: float
    tokens_per_second: float
    replicas: int


NOT_TRIED = Trial(0.0, 0.0, 0)


def try_engines(job: Job, stretches: Sequence[pa.Table], seconds: float) -> tuple[float, dict[str, Trial]]:
    """Start one replica of every model on this machine, side by side, and give each rows of the sample for some seconds.

    Args:
        job: The job.
        stretches: Rows as the stage `split` leaves them.
        seconds: How long to measure.

    Returns:
        Seconds that Ray took to start, and what was found of every model; nothing where there is none, or no time for it.

    Raises:
        ModelError: A model can't be loaded.
    """
    if not (job.members.local_pools and seconds):
        return 0.0, {}
    started = time.perf_counter()
    with ray_session(job.runtime, *compute_needed_resources(make_stages(job))):
        import ray

        ray_seconds = time.perf_counter() - started
        # Who is served is not paid for a trial.
        actors = {stage.name: start_actor(stage) for stage in make_stages(job) if stage.name in job.members.local_pools}
        table = pa.concat_tables(stretches)
        waiting = {actor.__ray_ready__.remote(): name for name, actor in actors.items()}
        start_up: dict[str, float] = {}
        while waiting:
            done, _ = ray.wait(list(waiting))
            ray.get(done[0])
            start_up[waiting.pop(done[0])] = time.perf_counter() - started - ray_seconds
        rates = _rates(ray, actors, table, seconds)
    return ray_seconds, {name: Trial(start_up[name], rates[name], job.members.local_pools[name].max) for name in actors}


def try_judge(job: Job, stretches: Sequence[pa.Table], seconds: float) -> dict[str, Trial]:
    """Try the judge of the cascade, if it has an engine here; it runs when all others have ended."""
    judge = job.escalation.judge
    if judge is None:
        return {}
    members = job.members.model_copy(update={"slms": (judge,), "uncertainty": (), "rerank": None, "detectors": ()})
    alone = job.model_copy(update={"members": members, "escalation": EscalationConfig()})
    return try_engines(alone, stretches, seconds)[1]


def _rates(ray: Any, actors: dict[str, Any], table: pa.Table, seconds: float) -> dict[str, float]:
    """Tokens computed a busy second of each engine, while all of them are busy."""
    used = {name: [0, 0.0] for name in actors}
    place = dict.fromkeys(actors, 0)
    size = dict.fromkeys(actors, FIRST_ROWS)
    until = time.perf_counter() + seconds
    asked: dict[Any, str] = {}

    def ask(name: str) -> None:
        rows = table.slice(place[name], size[name])
        place[name] += size[name]
        if rows.num_rows and time.perf_counter() < until:
            asked[actors[name].__call__.remote(rows)] = name

    for name in actors:
        ask(name)
    while asked:
        done, _ = ray.wait(list(asked))
        name = asked.pop(done[0])
        usage = [entry for row in ray.get(done[0])["usage"].to_pylist() for entry in row or ()]
        busy = sum(entry["engine_seconds"] for entry in usage)
        used[name][0] += sum(entry["tokens_computed"] for entry in usage)
        used[name][1] += busy
        size[name] *= 1 if busy > LONG_ENOUGH else 2
        ask(name)
    return {name: tokens / busy if busy else 0.0 for name, (tokens, busy) in used.items()}
