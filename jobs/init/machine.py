"""The machine that `init` runs on: cores, memory, GPUs that engines can use."""

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """What a machine has.

    Attributes:
        cores: Logical CPUs, as Ray counts them.
        memory: GiB of memory.
        gpus: Memory of each GPU that this installation can use, in GiB.
        unused_gpus: GPUs that are there, and that this installation's PyTorch can't use.
    """

    cores: int
    memory: float
    gpus: tuple[float, ...] = ()
    unused_gpus: int = 0


def this_machine() -> Machine:
    """Look at this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    there = len(list(Path("/dev").glob("nvidia[0-9]*")))
    gpus = _usable_gpus() if there else ()
    return Machine(os.cpu_count() or 1, memory, gpus, 0 if gpus else there)


def _usable_gpus() -> tuple[float, ...]:
    import torch  # takes seconds, so only where there is a GPU at all

    if not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_properties(i).total_memory / GIB for i in range(torch.cuda.device_count()))
