"""What the steps of a job take of Ray: logical CPUs, threads, environment."""

import os

from ragassay.jobs.config import Job
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.uncertainty.config import ReadingModel

LIGHT_CPUS = 0.25
"""Logical CPUs of the tasks that read, split and write: a fraction, so that SLM pools never leave them without a place."""


DRIVER_CPUS = 0.5
"""Logical CPUs of the tasks of the cheap steps, fit and finalize."""

CHEAP = (1.0, 0.0)
"""Logical CPUs and GPUs that a command needs which runs cheap steps alone."""


def threads_of(member: Slm | ReadingModel, job: Job) -> int:
    """CPU threads of one replica: its own setting, else the cores shared among all replicas that run without a GPU."""
    pools = [slm.replicas for slm in job.slms if not slm.engine.SERVED]
    pools += [member.replicas for member, *_ in job.readings]
    pools += [job.rerank.replicas] if job.rerank else []
    replicas = sum(pool.max for pool in pools if pool.num_gpus == 0)
    own = member.engine.threads if isinstance(member.engine, LocalSettings) else None
    return own or max(1, (os.cpu_count() or 1) // max(1, replicas))


def engine_environment() -> dict[str, str]:
    """Environment variables of the processes that hold engines."""
    from ragassay.pipeline.engines.vllm_engine import openmp_library
    from ragassay.pipeline.engines.weights import home

    environment = {"RAGASSAY_HOME": str(home()), "TOKENIZERS_PARALLELISM": "true"}
    library = openmp_library()
    if library:
        environment["LD_PRELOAD"] = library
    return environment
