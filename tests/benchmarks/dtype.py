"""Compare bfloat16 and float32, between which `dtype: auto` chooses: `python -m tests.benchmarks.dtype [--avx2] [--prompts N]
[--rounds N]`.

Runs the same prompts of the bundled logs through vLLM and PyTorch, and the same token trees forward and backward as `ragassay
tune` does, in turns, each in a new process. `--avx2` makes PyTorch, oneDNN and vLLM use their kernels for processors without
AVX512, which approximates such a processor.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
from typing import Any

from ragassay.pipeline.engines.dtype import detect_cpu_dtype
from ragassay.pipeline.engines.torch_engine import SPINS
from ragassay.pipeline.engines.torch_import import import_torch
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from tests.benchmarks.agreement import HANDBOOK, build_handbook_prompts

DTYPES = ("bfloat16", "float32")
TREES = 3


def pretend_avx2() -> None:
    """Make every library use its AVX2 kernels; must run before they are imported."""
    os.environ |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    import torch

    for name in ("_is_avx512_supported", "_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        setattr(torch.cpu, name, lambda: False)


def measure_serving(slm: Slm, count: int) -> float:
    """Measure the prompt tokens that the SLM's engine computes per second."""
    engine = slm.load_engine(threads=multiprocessing.cpu_count())
    builder = PromptBuilder(slm, engine.tokenizer)
    prompts = sorted(build_handbook_prompts(builder, 2 * count))
    labels = [*builder.yes_ids, *builder.no_ids]
    engine.label_logprobs(prompts[:8], labels)
    started = time.perf_counter()
    output = engine.label_logprobs(prompts[count:], labels)
    return float(output.tokens_computed.sum() / (time.perf_counter() - started))


def measure_training(slm: Slm, count: int) -> float:
    """Measure the tokens of trees per second, forward and backward."""
    import torch

    from ragassay.jobs.config.input import Columns
    from ragassay.jobs.evaluation.labels import LabelSource
    from ragassay.jobs.training.examples import read_examples, split_large_groups
    from ragassay.pipeline.engines.prepare import load_tokenizer
    from ragassay.pipeline.text.split import load_splitter
    from ragassay.pipeline.training.trainable_model import load_for_training
    from tests.benchmarks.tuning import PACK, run_trees

    torch.set_num_threads(multiprocessing.cpu_count())
    builder = PromptBuilder(slm, load_tokenizer(slm))
    logs = str(next(HANDBOOK.rglob("*.parquet")))
    examples = read_examples(logs, LabelSource("label"), Columns(), slm, builder, load_splitter("sentencizer", "en"), 4096)
    first, *groups = split_large_groups(examples.groups, PACK)[: TREES + 1]
    model = load_for_training(slm, rank=16, layers=16, seed=0)
    run_trees(model, first.units, (builder.yes_ids, builder.no_ids))
    started = time.perf_counter()
    for group in groups:
        run_trees(model, group.units, (builder.yes_ids, builder.no_ids))
    return sum(group.tokens for group in groups) / (time.perf_counter() - started)


def measure(way: str, dtype: str, count: int, avx2: bool, result: Any) -> None:
    """Run one of the measurements in this process."""
    if way != "vllm":
        import_torch(0 if way == "train" else SPINS)  # like `ragassay tune` and the engine
    if avx2:
        pretend_avx2()
    engine = "torch" if way == "train" else way
    slm = Slm.model_validate({"name": "m", "dtype": dtype, "engine": engine})
    result.put((measure_training if way == "train" else measure_serving)(slm, count))


def run_measurement(way: str, dtype: str, count: int, *, avx2: bool = False) -> float:
    """Return the tokens per second of a way in a new process."""
    context = multiprocessing.get_context("spawn")
    result: Any = context.Queue()
    process = context.Process(target=measure, args=(way, dtype, count, avx2, result))
    process.start()
    rate: float = result.get(timeout=1800)
    process.join()
    return rate


def main() -> None:
    """Print tokens per second and the ratio of float32 to bfloat16 as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--avx2", action="store_true")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "auto on this processor": detect_cpu_dtype(),
        "kernels": "AVX2" if options.avx2 else "all it has",
    }
    for way in ("vllm", "torch", "train"):
        rates: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
        for _ in range(options.rounds):
            for dtype in DTYPES:
                rates[dtype].append(run_measurement(way, dtype, options.prompts, avx2=options.avx2))
        medians = {dtype: statistics.median(dtype_rates) for dtype, dtype_rates in rates.items()}
        results[way] = {dtype: [round(rate) for rate in dtype_rates] for dtype, dtype_rates in rates.items()}
        results[way]["float32 / bfloat16"] = round(medians["float32"] / medians["bfloat16"], 2)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
