"""Ray resources of the steps of a job: logical CPUs and threads."""

import os
from collections.abc import Iterable

from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.engines.settings import LocalSettings

LIGHT_CPUS = 0.5
"""Logical CPUs of a task that reads, splits or writes, where enough CPUs are free.

A smaller value gains nothing: tasks that share a core do no more work together, and each task is a process that takes seconds
of CPU to start.
"""

MIN_LIGHT_CPUS = 0.25
"""Logical CPUs of a light task where actor pools leave few CPUs free, so that light tasks can always run."""

CONCURRENT_LIGHT_TASKS = 4
"""Light tasks that must be able to run at the same time, or a plan could wait for itself: read, split, finalize, write."""

MODEL_FREE_TASK_CPUS = 0.5
"""Logical CPUs of a task of a step without a model: fit, finalize."""

MODEL_FREE_RESOURCES = (1.0, 0.0)
"""Logical CPUs and GPUs that a command needs if none of its steps needs a model."""


def count_threads(engine: LocalSettings, pools: Iterable[Replicas]) -> int:
    """Return the CPU threads of one replica: the engine's setting, or the cores divided by the number of replicas without GPU.

    Args:
        engine: Engine of the replica.
        pools: Pools of all models that run at the same time, including this one.
    """
    replicas = sum(pool.max for pool in pools if pool.num_gpus == 0)
    return engine.threads or max(1, (os.cpu_count() or 1) // max(1, replicas))


def choose_light_cpus(free: float) -> float:
    """Return the logical CPUs of a light task.

    Args:
        free: Logical CPUs that remain when all actor pools have their maximum size; negative if the pools need more than exist.
    """
    return LIGHT_CPUS if free >= CONCURRENT_LIGHT_TASKS * LIGHT_CPUS else MIN_LIGHT_CPUS
