"""What the steps of a job take of Ray: logical CPUs and threads."""

import os
from collections.abc import Iterable

from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.slm.config import Replicas

LIGHT_CPUS = 0.5
"""Logical CPUs of the tasks that read, split and write, where there is room.

Not less: tasks that share a core do no more together, and each is a process, whose start takes seconds of CPU.
"""

LEAST_LIGHT_CPUS = 0.25
"""The same beside pools that leave little, so that they never leave such tasks without a place."""

LIGHT_AT_ONCE = 4
"""Light tasks that must have a place at once, so that a plan never waits for itself: read, split, finalize, write."""

DRIVER_CPUS = 0.5
"""Logical CPUs of the tasks of the cheap steps, fit and finalize."""

CHEAP = (1.0, 0.0)
"""Logical CPUs and GPUs that a command needs which runs cheap steps alone."""


def threads_of(engine: LocalSettings, pools: Iterable[Replicas]) -> int:
    """CPU threads of one replica: its engine's setting, else the cores shared among all replicas that run without a GPU.

    Args:
        engine: Its engine.
        pools: Of the models that run at once, its own among them.
    """
    replicas = sum(pool.max for pool in pools if pool.num_gpus == 0)
    return engine.threads or max(1, (os.cpu_count() or 1) // max(1, replicas))


def light_cpus(free: float) -> float:
    """Logical CPUs of a light task.

    Args:
        free: Logical CPUs that actor pools leave when they have grown; below 0 where they want more than there are.
    """
    return LIGHT_CPUS if free >= LIGHT_AT_ONCE * LIGHT_CPUS else LEAST_LIGHT_CPUS
