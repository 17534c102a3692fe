"""Measure a whole job without the SLM's cost: `python -m tests.benchmarks.scale FOLDER [--rows 10000 100000 1000000]
[--restart]`.

The job runs completely (read, split, tokenize, write, count, fit, finalize) with an engine that answers at once. Prints one
line per size: seconds from the start of its process, and the fall of the machine's available memory. With --restart, the last
size is killed when 99 % of its rows are committed, and a second line has the time of the same command afterwards. Logs and
outputs are written to FOLDER.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from ragassay.jobs.runtime.ray_session import set_ray_environment
from ragassay.jobs.runtime.ray_start import start_local_ray
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.slm.config import Slm
from tests.benchmarks.agreement import HANDBOOK

SLM = Slm(name="constant")
REPO = Path(__file__).parents[2]


class ConstantEngine:
    """Engine that answers at once; its logprobs depend only on the prompt's length."""

    def __init__(self, slm: Slm, threads: int) -> None:
        from ragassay.pipeline.engines.prepare import load_tokenizer

        self.tokenizer = load_tokenizer(slm)
        self.max_model_len = slm.get_window()

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        lengths = np.array([len(prompt) for prompt in prompts])
        logprobs = -3.0 - (lengths[:, None] % 7) * np.arange(len(labels)) / 10
        return EngineOutput(logprobs, lengths, np.zeros_like(lengths))


def use_constant_engine() -> None:
    """Replace the engine; runs first in every Ray worker."""
    from ragassay.pipeline.slm.config import Slm

    Slm.load_engine = lambda slm, threads: ConstantEngine(slm, threads)  # type: ignore[method-assign,assignment]  # noqa: PLW0108


def write_logs(path: Path, rows: int) -> None:
    """Write rows of the handbook, each with a number in question and context, so that none repeats another."""
    base = pl.read_parquet(HANDBOOK / "**/*.parquet").select("question", "context", "response")
    unfinished = path.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    rows_per_file = 50_000
    for part, first in enumerate(range(0, rows, rows_per_file)):
        number = np.arange(first, min(first + rows_per_file, rows))
        frame = base[number % len(base)].with_columns(n=pl.Series(number).cast(pl.String))
        frame = frame.with_columns(
            question=pl.col("question") + " (" + pl.col("n") + ")",
            context=pl.concat_list(pl.lit("File ") + pl.col("n") + ".", pl.col("context")),
        ).drop("n")
        frame.write_parquet(unfinished / f"part-{part:04}.parquet", row_group_size=10_000)
    unfinished.rename(path)


@dataclass
class Memory:
    """Available memory of the machine before a block of code and its lowest value during the block, in bytes."""

    before: int = 0
    lowest: int = 0

    @property
    def used(self) -> int:
        return self.before - self.lowest


@contextlib.contextmanager
def watch_memory() -> Iterator[Memory]:
    memory = Memory(psutil.virtual_memory().available, psutil.virtual_memory().available)
    done = threading.Event()

    def record_lowest() -> None:
        while not done.wait(0.2):
            memory.lowest = min(memory.lowest, psutil.virtual_memory().available)

    thread = threading.Thread(target=record_lowest, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join()


def run_job_here(logs: str, output: str, block_mib: float, result: Any) -> None:
    """Run the whole job, and put its record into `result`."""
    os.environ["PYTHONPATH"] = str(REPO)
    set_ray_environment()
    import ray
    from rich.console import Console

    from ragassay.jobs.config.job import Job
    from ragassay.jobs.run import run_job
    from ragassay.jobs.runtime.resources import compute_needed_resources
    from ragassay.jobs.scoring.stages import make_stages

    job = Job(members={"slms": (SLM,)}, runtime={"block_mib": block_mib})
    hook = {"worker_process_setup_hook": "tests.benchmarks.scale.use_constant_engine"}
    start_local_ray(compute_needed_resources(make_stages(job))[0], hook)
    record = run_job(job, logs, output, Console(quiet=True))
    result.put({"rows": record.rows, "steps": record.seconds})
    ray.shutdown()


def start_job(logs: Path, output: Path, block_mib: float) -> tuple[Any, Any]:
    """Start the job in a new process; return the process and the queue of its record."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=run_job_here, args=(str(logs), str(output), block_mib, queue))
    process.start()
    return process, queue


def invoke(logs: Path, output: Path, block_mib: float) -> dict[str, Any]:
    """Run the job to its end."""
    started = time.perf_counter()
    process, queue = start_job(logs, output, block_mib)
    while queue.empty():
        if not process.is_alive():
            raise SystemExit(f"the job died with exit code {process.exitcode}")
        time.sleep(0.2)
    result: dict[str, Any] = queue.get()
    seconds = time.perf_counter() - started
    process.join()
    return {"seconds": round(seconds, 1), **result}


def kill_at(logs: Path, output: Path, block_mib: float, rows: int) -> dict[str, Any]:
    """Start the job, and kill it with all its processes when `rows` rows are committed."""
    from ragassay.jobs.scoring.checkpoint import CommittedRowCounter
    from ragassay.jobs.storage.folder import open_folder

    started = time.perf_counter()
    process, _queue = start_job(logs, output, block_mib)  # the process needs its queue to exist
    committed = CommittedRowCounter(open_folder(str(output)), range(10_000))
    while committed() < rows:
        if not process.is_alive():
            raise SystemExit("the job ended before it could be killed")
        time.sleep(0.2)
    seconds = time.perf_counter() - started
    for victim in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
    process.join()
    return {"killed_after": round(seconds, 1), "committed": committed()}


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--block-mib", type=float, default=16, help="as in infra/job_gpu.yaml")
    parser.add_argument("--restart", action="store_true")
    options = parser.parse_args()
    for rows in options.rows:
        logs, output = options.folder / f"logs-{rows}", options.folder / f"out-{rows}"
        if not logs.exists():
            write_logs(logs, rows)
        shutil.rmtree(output, ignore_errors=True)
        interrupt = options.restart and rows == options.rows[-1]
        with watch_memory() as memory:
            if interrupt:
                result = kill_at(logs, output, options.block_mib, rows * 99 // 100)
            else:
                result = invoke(logs, output, options.block_mib)
        print(json.dumps({"size": rows, "mib": memory.used >> 20, **result}), flush=True)
        if interrupt:
            print(json.dumps({"size": rows, "restarted": True, **invoke(logs, output, options.block_mib)}), flush=True)


if __name__ == "__main__":
    main()
