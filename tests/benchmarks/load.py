"""Measure how engines and training slow down where other processes are busy.

    python -m tests.benchmarks.load [--busy 0 1 2] [--only WAY …] [--prompts 40] [--rounds 2]

Runs the ways of `tests.benchmarks.dtype` in turns, each in a new process with one thread per core, while other processes only
count. OpenMP's threads wait for each other at the end of each product. While they spin, they take the core that a descheduled
thread waits for; so each way runs with several settings of how long they spin. Prints tokens per second.
"""

import argparse
import contextlib
import multiprocessing
from collections.abc import Iterator, Mapping

from ragassay.pipeline.engines.dtype import detect_cpu_dtype
from ragassay.pipeline.engines.vllm_engine import openmp_library
from tests.benchmarks.dtype import run_measurement
from tests.benchmarks.speed import preload, set_environment

SETTINGS: dict[str, list[dict[str, str]]] = {
    "torch": [{"GOMP_SPINCOUNT": "300000"}, {}, {"GOMP_SPINCOUNT": "0"}],
    "train": [{"GOMP_SPINCOUNT": "300000"}, {"GOMP_SPINCOUNT": "10000"}, {}],
    "vllm": [{}, {"KMP_BLOCKTIME": "0"}],
}
"""Way -> environments to compare; {} is what the program does itself, 300,000 spins the default of PyTorch's OpenMP."""


def count_forever() -> None:
    """Take one core."""
    while True:
        pass


@contextlib.contextmanager
def keep_busy(processes: int) -> Iterator[None]:
    """Run processes that each take a core."""
    running = [multiprocessing.get_context("spawn").Process(target=count_forever, daemon=True) for _ in range(processes)]
    for process in running:
        process.start()
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.join()


def run_way(way: str, variables: Mapping[str, str], prompts: int) -> float:
    """Return the tokens per second of a way with environment variables."""
    with set_environment(variables), preload(openmp_library() or "" if way == "vllm" else ""):
        return run_measurement(way, detect_cpu_dtype(), prompts)


def main() -> None:
    """Print one line per way, setting and number of busy processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="*", default=list(SETTINGS))
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    for way in options.only:
        settings = SETTINGS[way]
        for busy in options.busy:
            rates: list[list[float]] = [[] for _ in settings]
            with keep_busy(busy):
                for _ in range(options.rounds):
                    for variables, measured in zip(settings, rates, strict=True):
                        measured.append(run_way(way, variables, options.prompts))
            for variables, measured in zip(settings, rates, strict=True):
                name = ", ".join(f"{key}={value}" for key, value in variables.items()) or "as the program does"
                print(f"{way}, {busy} busy, {name}: {', '.join(f'{rate:.0f}' for rate in measured)} tokens/s", flush=True)


if __name__ == "__main__":
    main()
