"""Compute the logical CPUs, GPUs and threads that stages need, and check that Ray has them."""

import os
from collections.abc import Iterable, Sequence

from ragassay.jobs import errors
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.stages.stage import Stage

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


def sum_min_pool_cpus(stages: Sequence[Stage]) -> float:
    """Return the logical CPUs of all actor pools at their minimum size."""
    return sum(stage.replicas.min * stage.replicas.num_cpus for stage in stages if stage.replicas)


def sum_max_pool_cpus(stages: Sequence[Stage]) -> float:
    """Return the logical CPUs of all actor pools at their maximum size."""
    return sum(stage.replicas.max * stage.replicas.num_cpus for stage in stages if stage.replicas)


def compute_needed_resources(stages: Sequence[Stage]) -> tuple[float, float]:
    """Return the logical CPUs and GPUs that the stages need; with fewer, a plan could wait for itself forever."""
    gpus = sum(stage.replicas.min * stage.replicas.num_gpus for stage in stages if stage.replicas)
    return sum_min_pool_cpus(stages) + CONCURRENT_LIGHT_TASKS * MIN_LIGHT_CPUS, gpus


def check_resources(needed_cpus: float, needed_gpus: float) -> None:
    """Check that Ray has the logical CPUs and GPUs that are needed at once.

    Raises:
        ConfigError: It has fewer.
    """
    import ray

    resources = ray.cluster_resources()
    for kind, needed in {"CPU": needed_cpus, "GPU": needed_gpus}.items():
        available = resources.get(kind, 0)
        if needed > available:
            raise ConfigError(
                errors.TOO_FEW_RESOURCES, needed=needed, kind=kind, available=available, kind_in_config=kind.lower()
            )
