"""`make bench`: compare the speed of a job with that of other programs on the same prompts and machine.

    python -m tests.benchmarks.speed out/bench.md [--logs LOG.parquet] [--contexts N] [--rounds 3] [--config JOB] [--only WAY …]

Each way runs once per round, in a new process with the same OpenMP library; the table has medians and ratios of medians. The
default logs are the bundled handbook's, the default SLM is the embedded one. --logs names another Parquet file with question,
context and response; --config takes the first SLM of a job file; --contexts takes the first N different contexts, because slow
ways need several times as long as the job.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import yaml

from ragassay.jobs.config.job import load_job
from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.engines.vllm_engine import VllmSettings, openmp_library
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.row_prompts import Prompt, build_row_prompts
from ragassay.pipeline.slm.token_reuse import PrefixTree
from ragassay.pipeline.text.split import load_splitter, split_sentences
from tests.benchmarks.agreement import HANDBOOK

TIMEOUT = 3600
SLM_STAGE = "this job, its SLM stage"
END_TO_END = "this job, end to end"


@dataclass
class Figures:
    """Cost of one way: seconds without start-up and warm-up, and tokens computed by the model."""

    seconds: float
    tokens_computed: int
    idle_seconds: float = 0.0
    start_up: float | None = None


def build_prompts(logs: Path, slm: Slm, builder: PromptBuilder, window: int) -> list[Prompt]:
    """Build all prompts of a log, in the order of its rows and sentences."""
    nlp = load_splitter("sentencizer", "en")
    plans = build_row_prompts(read_rows(logs), slm, builder, window - 1, lambda text: split_sentences(nlp, [text])[0])
    return [prompt for plan in plans for text in plan.prompts for prompt in text]


def read_rows(logs: Path) -> list[Row]:
    """Read the rows of a Parquet file or folder that have sentences, split into sentences."""
    nlp = load_splitter("sentencizer", "en")
    frame = pl.read_parquet(logs if logs.is_file() else logs / "**/*.parquet")
    rows = frame.select("question", "context", "response").to_dicts()
    spans = split_sentences(nlp, [row["response"] for row in rows])
    return [
        Row(row["question"], row["context"], row["response"], [row["response"][a:b] for a, b in ends])
        for row, ends in zip(rows, spans, strict=True)
        if ends
    ]


def run_job(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run `ragassay score` as a user does, with start-up; also report its SLM stage from the first engine call."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "job.yaml"
        config.write_text(yaml.safe_dump({"members": {"slms": [slm.model_dump(mode="json", exclude_unset=True)]}}))
        started = time.perf_counter()
        command = [sys.executable, "-m", "ragassay", "score", str(logs), f"{folder}/out", "--config", str(config)]
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - started
        run = json.loads(Path(folder, "out", "manifest.json").read_text())["runs"][-1]
    usage = run["usage"][slm.name]
    tokens, idle = int(usage["tokens_computed"]), usage["idle_seconds"]
    return {END_TO_END: Figures(seconds, tokens), SLM_STAGE: Figures(usage["engine_seconds"] + idle, tokens, idle)}


def use_vllm(slm: Slm, **settings: Any) -> Slm:
    """Return the SLM with vLLM as its engine, with the settings that its own engine shares."""
    shared = slm.engine.model_dump(include=set(VllmSettings.model_fields) - {"kind"})
    return slm.model_copy(update={"engine": VllmSettings(**shared | settings)})


def run_best_order(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run only vLLM: all prompts in the best order, in one `generate` call."""
    return {"bare vLLM, best order": _run_engine(logs, use_vllm(slm), sorted)}


def run_trees(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run only PyTorch with prefix trees: all prompts in one call."""
    engine = TorchSettings(dtype=slm.local_engine.dtype)
    return {"bare PyTorch, prefix trees": _run_engine(logs, slm.model_copy(update={"engine": engine}), sorted)}


def run_compiled(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run only vLLM, compiled: measures the gain of `enforce_eager: false` and its cost at start-up."""
    with tempfile.TemporaryDirectory() as cache:  # do not reuse what an earlier round compiled
        os.environ["VLLM_CACHE_ROOT"] = cache
        return {"bare vLLM, compiled": _run_engine(logs, use_vllm(slm, enforce_eager=False), sorted)}


def run_shuffled(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run only vLLM with all prompts shuffled."""
    return {
        "bare vLLM, prompts shuffled": _run_engine(
            logs, use_vllm(slm), lambda prompts: Random(0).sample(list(prompts), len(prompts))
        )
    }


def run_uncached(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run only vLLM without a prefix cache."""
    return {"bare vLLM, no prefix cache": _run_engine(logs, use_vllm(slm), sorted, enable_prefix_caching=False)}


def run_transformers(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run transformers with padded batches sorted by length, as a user would write it."""
    engine = TransformersSettings(dtype=slm.local_engine.dtype)
    return {"transformers, padded": _run_engine(logs, slm.model_copy(update={"engine": engine}), sorted)}


def _run_engine(logs: Path, slm: Slm, order: Callable[[Sequence[Prompt]], list[Prompt]], **arguments: Any) -> Figures:
    from ragassay.pipeline.engines import vllm_engine

    if arguments:
        original = vllm_engine.engine_args
        vllm_engine.engine_args = lambda *args, **kwargs: original(*args, **kwargs) | arguments
    started = time.perf_counter()
    engine = EngineThread(lambda: slm.load_engine(os.cpu_count() or 1))
    builder = PromptBuilder(slm, engine.tokenizer)
    labels = [*builder.yes_ids, *builder.no_ids]
    engine.warm_up(labels)
    start_up = time.perf_counter() - started
    prompts = order(list(dict.fromkeys(build_prompts(logs, slm, builder, engine.max_model_len))))
    output = engine.label_logprobs(prompts, labels)
    return Figures(output.seconds, int(output.tokens_computed.sum()), start_up=start_up)


def run_ray_data_llm(logs: Path, slm: Slm) -> dict[str, Figures]:
    """Run Ray's LLM processor on the same prompts as token ids; its seconds are those of the whole pipeline."""
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_model
    from ragassay.pipeline.engines.vllm_engine import engine_args, sampling_args

    slm = use_vllm(slm)
    assert isinstance(slm.engine, VllmSettings)
    started = time.perf_counter()
    builder = PromptBuilder(slm, load_tokenizer(slm))
    prompts = list(dict.fromkeys(build_prompts(logs, slm, builder, slm.get_window())))
    labels = [*builder.yes_ids, *builder.no_ids]
    args = engine_args(slm, slm.engine, prepare_model(slm), cpu=True, window=slm.get_window(), labels=6, gpus=0)
    model = args.pop("model")
    environment = {
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": str(os.cpu_count()),
        "LD_PRELOAD": openmp_library() or "",
    }
    ray.init(address="local", num_cpus=8, include_dashboard=False, logging_level="ERROR")
    processor = build_processor(
        vLLMEngineProcessorConfig(
            model_source=model,
            engine_kwargs=args,
            runtime_env={"env_vars": environment},
            batch_size=256,
            concurrency=1,
            chat_template_stage=False,
            tokenize_stage=False,
            detokenize_stage=False,
            log_engine_metrics=False,
            accelerator_type=None,
            placement_group_config={"bundles": [{"CPU": 1}]},
        ),
        preprocess=lambda row: {
            "prompt": "",
            "tokenized_prompt": row["prompt"],
            "sampling_params": sampling_args(labels),
        },
        postprocess=lambda row: {"computed": row["num_input_tokens"]},
    )
    rows = processor(ray.data.from_items([{"prompt": list(p)} for p in prompts])).take_all()
    seconds = time.perf_counter() - started
    assert len(rows) == len(prompts)
    return {"ray.data.llm, end to end": Figures(seconds, 0)}


WAYS: dict[str, Callable[[Path, Slm], dict[str, Figures]]] = {
    "job": run_job,
    "vllm": run_best_order,
    "torch": run_trees,
    "compiled": run_compiled,
    "shuffled": run_shuffled,
    "uncached": run_uncached,
    "ray": run_ray_data_llm,
    "transformers": run_transformers,
}


def invoke(way: str, logs: Path, slm: Slm) -> dict[str, Figures | str]:
    """Run one way in a new process; return its figures, or why it failed."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_child, args=(way, logs, slm, sender))
    with preload(openmp_library() or ""):
        process.start()
    sender.close()
    try:
        results = receiver.recv() if receiver.poll(TIMEOUT) else {way: f"took longer than {TIMEOUT} s"}
    except EOFError:
        results = {way: f"died with exit code {process.exitcode}"}
    process.join(timeout=30)
    if process.is_alive():
        process.kill()
    return {name: Figures(**value) if isinstance(value, dict) else str(value) for name, value in results.items()}


def preload(library: str) -> contextlib.AbstractContextManager[None]:
    """Preload a library in processes started inside, as the job's actors do."""
    return set_environment({"LD_PRELOAD": library})


@contextlib.contextmanager
def set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _run_child(way: str, logs: Path, slm: Slm, result: Any) -> None:
    try:
        result.send({name: asdict(figures) for name, figures in WAYS[way](logs, slm).items()})
    except Exception as error:
        text = error.stderr.decode()[-300:] if isinstance(error, subprocess.CalledProcessError) else str(error)
        result.send({way: f"{type(error).__name__}: {text.strip().splitlines()[-1] if text.strip() else ''}"})


def write_subset(logs: str, contexts: int | None, folder: Path) -> Path:
    """Write the rows with a log's first different contexts to one Parquet file."""
    source = f"{logs}/**/*.parquet" if Path(logs).is_dir() else logs
    frame = pl.read_parquet(source, hive_partitioning=False).select("question", "context", "response")
    if contexts:
        kept = frame["context"].unique(maintain_order=True).head(contexts)
        frame = frame.join(kept.to_frame(), on="context", how="semi", maintain_order="left")
    path = folder / "logs.parquet"
    frame.write_parquet(path)
    return path


def count_prompts(logs: Path, slm: Slm) -> tuple[int, int, int, int]:
    """Count a log's distinct prompts, their tokens, and the tokens of their prefix tree by the engine's blocks and by token."""
    from ragassay.pipeline.engines.prepare import load_tokenizer

    prompts = sorted(set(build_prompts(logs, slm, PromptBuilder(slm, load_tokenizer(slm)), slm.get_window())))
    floor, distinct = (sum(map(PrefixTree(block).add, prompts)) for block in (slm.cache_block_size, 1))
    return len(prompts), sum(map(len, prompts)), floor, distinct


def render_table(results_by_way: dict[str, list[Figures | str]], prompts: int, floor: int) -> str:
    """Render medians and ratios to this job as Markdown: whole runs to the whole job, engines to its SLM stage."""
    lines = [
        "| way | seconds | start-up | prompts/s | tokens computed / floor | times as long as this job |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    medians = {
        name: statistics.median(r.seconds for r in results if isinstance(r, Figures))
        for name, results in results_by_way.items()
        if any(isinstance(r, Figures) for r in results)
    }
    for name, results in results_by_way.items():
        figures = [r for r in results if isinstance(r, Figures)]
        if not figures:
            lines.append(f"| {name} | could not be run: {results[0]} | | | | |")
            continue
        spread = f"{medians[name]:.1f} ({min(r.seconds for r in figures):.1f} to {max(r.seconds for r in figures):.1f})"
        tokens = f"{figures[0].tokens_computed / floor:.3f}" if figures[0].tokens_computed else ""
        job_seconds = medians.get(END_TO_END if name.endswith("end to end") else SLM_STAGE)
        ratio = f"{medians[name] / job_seconds:.2f}" if job_seconds else ""
        starts = [r.start_up for r in figures if r.start_up is not None]
        start_up = f"{statistics.median(starts):.0f}" if starts else ""
        lines.append(f"| {name} | {spread} | {start_up} | {prompts / medians[name]:.1f} | {tokens} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Run all ways in turns, and write the table after every round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--logs", default=str(HANDBOOK))
    parser.add_argument("--contexts", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--config")
    options = parser.parse_args()
    slm = load_job(options.config).members.slms[0] if options.config else Slm(name="smollm2")
    target = Path(options.table)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        logs = write_subset(options.logs, options.contexts, Path(folder))
        prompts, tokens, floor, distinct = count_prompts(logs, slm)
        head = (
            f"{Path(options.logs).name}: {pl.read_parquet(logs).height} rows, {prompts:,} prompts, {tokens:,} tokens, "
            f"floor {floor:,} ({distinct:,} if the prefix cache had no blocks); {platform.machine()}, {os.cpu_count()} cores"
        )
        results_by_way: dict[str, list[Figures | str]] = {}
        for number in range(options.rounds):
            for way in options.only:
                for name, result in invoke(way, logs, slm).items():
                    results_by_way.setdefault(name, []).append(result)
                    print(f"round {number + 1}: {name}: {result}", flush=True)
            target.write_text(
                f"{head}; round {number + 1} of {options.rounds}\n\n{render_table(results_by_way, prompts, floor)}\n"
            )
    print(target.read_text())


if __name__ == "__main__":
    main()
