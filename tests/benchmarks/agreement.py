"""Measure how far vLLM and another engine differ in log P(yes) and log P(no) of the same prompts, and the noise of batching in
vLLM. `python -m tests.benchmarks.agreement --dtype bfloat16` prints the figures as JSON.
"""

import argparse
import json
import multiprocessing
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter, split_sentences

HANDBOOK = Path(__file__).parents[2] / "jobs" / "data" / "handbook" / "logs"
Prompts = list[list[int]]


def build_handbook_prompts(builder: PromptBuilder, count: int) -> Prompts:
    """Build the first prompts of the bundled logs, as a job does."""
    nlp = load_splitter("sentencizer", "en")
    prompts: Prompts = []
    for row in pq.read_table(HANDBOOK).to_pylist():
        sentences = [row["response"][a:b] for a, b in split_sentences(nlp, [row["response"]])[0]]
        (encoded,) = builder.encode([(row["question"], row["context"], sentences)])
        prompts.extend(map(list, encoded.prompts()))
        if len(prompts) >= count:
            break
    return prompts[:count]


def score_prompts(slm: Slm, orders: list[list[int]], count: int, result: Any) -> None:
    """Score the same prompts in each order with one engine; put log P(yes) and log P(no) of each prompt into `result`."""
    engine = slm.load_engine(threads=multiprocessing.cpu_count())
    builder = PromptBuilder(slm, engine.tokenizer)
    prompts = build_handbook_prompts(builder, count)
    results = []
    for order in orders:
        logprobs = engine.label_logprobs([prompts[i] for i in order], [*builder.yes_ids, *builder.no_ids]).logprobs
        yes_no = np.stack(
            [np.logaddexp.reduce(part, axis=1) for part in np.split(logprobs, [len(builder.yes_ids)], axis=1)], axis=1
        )
        in_prompt_order = np.empty_like(yes_no)
        in_prompt_order[order] = yes_no
        results.append(in_prompt_order)
    result.put(results)


def invoke(slm: Slm, orders: list[list[int]], count: int) -> list[Any]:
    """Run an engine in a new process, because engines set thread counts and environment variables."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    process = context.Process(target=score_prompts, args=(slm, orders, count, result))
    process.start()
    results: list[Any] = result.get(timeout=600)
    process.join()
    return results


def compare_engines(dtype: str, count: int, adapter: str | None = None, other: str = "transformers") -> dict[str, float]:
    """Compute the largest and mean absolute difference of log P(yes) and log P(no), and of P(yes), between vLLM and another
    engine."""
    order = list(range(count))
    (vllm,) = invoke(_make_slm("vllm", dtype, adapter), [order], count)
    (reference,) = invoke(_make_slm(other, dtype, adapter), [order], count)
    differences = np.abs(vllm - reference)
    p_yes = np.abs(np.exp(vllm[:, 0]) - np.exp(reference[:, 0]))
    return {
        "max": float(differences.max()),
        "mean": float(differences.mean()),
        "p_yes_max": float(p_yes.max()),
        "p_yes_mean": float(p_yes.mean()),
        "log_odds_sigma": float((vllm[:, 0] - vllm[:, 1]).std()),
    }


def measure_noise(dtype: str, count: int) -> dict[str, float]:
    """Measure how vLLM's results change with the order of prompts, so with batches; each order gets a new engine."""
    order = list(range(count))
    (first,) = invoke(_make_slm("vllm", dtype), [order], count)
    (shuffled,) = invoke(_make_slm("vllm", dtype), [random.Random(1).sample(order, count)], count)
    odds = (first - shuffled)[:, 0] - (first - shuffled)[:, 1]
    return {
        "max": float(np.abs(first - shuffled).max()),
        "mean": float(np.abs(first - shuffled).mean()),
        "log_odds_max": float(np.abs(odds).max()),
    }


def _make_slm(engine: str, dtype: str, adapter: str | None = None) -> Slm:
    return Slm.model_validate({"name": engine, "engine": engine, "dtype": dtype, "adapter": adapter})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--adapter", help="bundled adapter, or a folder")
    parser.add_argument("--other", default="transformers", choices=["transformers", "torch"])
    options = parser.parse_args()
    results = {
        "dtype": options.dtype,
        f"vllm_vs_{options.other}": compare_engines(options.dtype, options.prompts, options.adapter, options.other),
        "vllm_shuffled": measure_noise(options.dtype, options.prompts),
    }
    print(json.dumps(results, indent=1))
