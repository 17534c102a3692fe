"""Measure a whole job without the SLM's cost.

    python -m tests.benchmarks.scale FOLDER [--rows 10000 100000 1000000] [--long] [--replicas 1 2 4] [--nodes 1 2] [--restart]

The job runs completely (read, split, tokenize, write, count, fit, finalize) with an engine that answers at once. Prints one
line per size, number of replicas and number of Ray nodes: seconds from the start of its process, and the fall of the machine's
available memory. With --long, a row has nine sentences and the passages of three rows of the handbook, and one row in ten
repeats the row before. With --restart, the last size is killed when 99 % of its rows are committed, and a second line has the
time of the same command afterwards. Logs and outputs are written to FOLDER.
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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from ragassay.jobs.runtime.ray_session import set_ray_environment
from ragassay.jobs.runtime.ray_start import start_local_ray
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.slm.config import Slm
from tests.benchmarks.agreement import HANDBOOK

SLM = Slm(name="constant", chat=False)  # like the bundled verifier
REPO = Path(__file__).parents[2]


class ConstantEngine:
    """Engine that answers at once; its logprobs depend only on the prompt's length."""

    def __init__(self, slm: Slm, threads: int) -> None:
        from ragassay.pipeline.engines.light_tokenizer import load_light_tokenizer

        self.tokenizer = load_light_tokenizer(slm)
        self.max_model_len = slm.get_window()

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        lengths = np.array([len(prompt) for prompt in prompts])
        logprobs = -3.0 - (lengths[:, None] % 7) * np.arange(len(labels)) / 10
        return EngineOutput(logprobs, lengths, np.zeros_like(lengths))


def use_constant_engine() -> None:
    """Replace the engine; runs first in every Ray worker."""
    from ragassay.pipeline.slm.config import Slm

    Slm.load_engine = lambda slm, threads: ConstantEngine(slm, threads)  # type: ignore[method-assign,assignment]  # noqa: PLW0108


def write_logs(path: Path, rows: int, *, is_long: bool) -> None:
    """Write rows of the handbook, each with a number in question and context, so that none repeats another.

    Args:
        path: Folder to write.
        rows: Number of rows.
        is_long: Join three rows of the handbook to one; and let one row in ten repeat the row before.
    """
    base = pl.read_parquet(HANDBOOK / "**/*.parquet").select("question", "context", "response")
    if is_long:
        base = base.with_columns(
            context=pl.concat_list("context", *(pl.col("context").shift(-n, fill_value=[]) for n in (1, 2))),
            response=pl.concat_str("response", *(pl.col("response").shift(-n, fill_value="") for n in (1, 2)), separator=" "),
        )
    unfinished = path.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    rows_per_file = 50_000
    for part, first in enumerate(range(0, rows, rows_per_file)):
        number = np.arange(first, min(first + rows_per_file, rows))
        if is_long:
            number -= number % 10 == 9
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


@dataclass(frozen=True)
class Setting:
    """How a job runs: MiB of a block, replicas of the engine, and nodes of Ray, each with an equal share of the cores."""

    block_mib: float
    replicas: int
    nodes: int


def run_job_here(logs: str, output: str, setting: Setting, result: Any) -> None:
    """Run the whole job, and put its record into `result`."""
    os.environ["PYTHONPATH"] = str(REPO)
    set_ray_environment()
    import ray
    from ray.cluster_utils import Cluster
    from rich.console import Console

    from ragassay.jobs.config.job import Job
    from ragassay.jobs.run import run_job
    from ragassay.jobs.runtime.resources import compute_needed_resources
    from ragassay.jobs.scoring.stages import make_stages

    replicas = Replicas(min=setting.replicas, max=setting.replicas, num_cpus=0.5 / setting.replicas)
    slm = SLM.model_copy(update={"engine": SLM.local_engine.model_copy(update={"replicas": replicas})})
    job = Job(members={"slms": (slm,)}, runtime={"block_mib": setting.block_mib})
    hook = {"worker_process_setup_hook": "tests.benchmarks.scale.use_constant_engine"}
    if setting.nodes == 1:
        start_local_ray(compute_needed_resources(make_stages(job))[0], hook)
    else:
        node = {"num_cpus": (os.cpu_count() or 1) / setting.nodes, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        for _ in range(1, setting.nodes):
            cluster.add_node(num_cpus=node["num_cpus"])
        ray.init(cluster.address, logging_level="ERROR", log_to_driver=False, runtime_env=hook)
    record = run_job(job, logs, output, Console(quiet=True))
    result.put({"rows": record.rows, "steps": record.seconds})
    ray.shutdown()


def start_job(logs: Path, output: Path, setting: Setting) -> tuple[Any, Any]:
    """Start the job in a new process; return the process and the queue of its record."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=run_job_here, args=(str(logs), str(output), setting, queue))
    process.start()
    return process, queue


def invoke(logs: Path, output: Path, setting: Setting) -> dict[str, Any]:
    """Run the job to its end."""
    started = time.perf_counter()
    process, queue = start_job(logs, output, setting)
    while queue.empty():
        if not process.is_alive():
            raise SystemExit(f"the job died with exit code {process.exitcode}")
        time.sleep(0.2)
    result: dict[str, Any] = queue.get()
    seconds = time.perf_counter() - started
    process.join()
    return {"seconds": round(seconds, 1), **result}


def kill_at(logs: Path, output: Path, setting: Setting, rows: int) -> dict[str, Any]:
    """Start the job, and kill it with all its processes when `rows` rows are committed."""
    from ragassay.jobs.scoring.checkpoint import CommittedRowCounter
    from ragassay.jobs.storage.folder import open_folder

    started = time.perf_counter()
    process, _queue = start_job(logs, output, setting)  # the process needs its queue to exist
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
    parser.add_argument("--long", action="store_true", help="long contexts, nine sentences, repeated rows")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1], help="replicas of the engine")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1], help="Ray nodes on this machine")
    parser.add_argument("--restart", action="store_true")
    options = parser.parse_args()
    for rows, replicas, nodes in product(options.rows, options.replicas, options.nodes):
        name = f"{rows}{'-long' if options.long else ''}"
        logs, output = options.folder / f"logs-{name}", options.folder / f"out-{name}"
        setting = Setting(options.block_mib, replicas, nodes)
        if not logs.exists():
            write_logs(logs, rows, is_long=options.long)
        shutil.rmtree(output, ignore_errors=True)
        interrupt = options.restart and rows == options.rows[-1]
        with watch_memory() as memory:
            result = kill_at(logs, output, setting, rows * 99 // 100) if interrupt else invoke(logs, output, setting)
        size = {"size": rows, "replicas": replicas, "nodes": nodes}
        print(json.dumps({**size, "mib": memory.used >> 20, **result}), flush=True)
        if interrupt:
            print(json.dumps({**size, "restarted": True, **invoke(logs, output, setting)}), flush=True)


if __name__ == "__main__":
    main()
