"""Two engines, the same prompts: how far vLLM and transformers are apart in log P(yes) and log P(no), and how much noise
batching makes in vLLM alone. `python -m tests.benchmarks.agreement --dtype bfloat16` prints the figures as JSON.
"""

import argparse
import json
import multiprocessing
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from pipeline.engines.protocol import load_engine
from pipeline.prompt import PromptBuilder
from pipeline.slm import Slm
from pipeline.split import load_splitter, split

HANDBOOK = Path(__file__).parents[2] / "jobs" / "handbook" / "logs"
Prompts = list[list[int]]


def handbook_prompts(builder: PromptBuilder, count: int) -> Prompts:
    """The first prompts of the bundled logs, as the job makes them."""
    nlp = load_splitter("sentencizer", "en")
    prompts: Prompts = []
    for row in pq.read_table(HANDBOOK).to_pylist():
        prefix = builder.prefix(row["question"], row["context"])
        sentences = [row["response"][a:b] for a, b in split(nlp, [row["response"]])[0]]
        prompts.extend([*prefix, *tail] for tail in builder.suffixes(row["question"], row["context"], sentences))
        if len(prompts) >= count:
            break
    return prompts[:count]


def score(slm: Slm, orders: list[list[int]], count: int, result: Any) -> None:
    """Score the same prompts once an order, in one process with one engine; puts log P(yes), log P(no) back in place."""
    engine = load_engine(slm, threads=multiprocessing.cpu_count())
    builder = PromptBuilder(slm, engine.tokenizer)
    prompts = handbook_prompts(builder, count)
    found = []
    for order in orders:
        out = engine.label_logprobs([prompts[i] for i in order], [*builder.yes, *builder.no]).logprobs
        both = np.stack([np.logaddexp.reduce(part, axis=1) for part in np.split(out, [len(builder.yes)], axis=1)], axis=1)
        back = np.empty_like(both)
        back[order] = both
        found.append(back)
    result.put(found)


def in_process(slm: Slm, orders: list[list[int]], count: int) -> list[Any]:
    """Each engine gets a process of its own: both set thread counts and environment for themselves."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    process = context.Process(target=score, args=(slm, orders, count, result))
    process.start()
    found: list[Any] = result.get(timeout=600)
    process.join()
    return found


def measure(dtype: str, count: int) -> dict[str, float]:
    """Largest and mean absolute differences of log P(yes) and log P(no)."""
    order = list(range(count))
    shuffled = random.Random(1).sample(order, count)
    vllm = Slm.model_validate({"name": "vllm", "dtype": dtype})
    reference = Slm.model_validate({"name": "transformers", "engine": "transformers", "dtype": dtype})
    a, cached = in_process(vllm, [order, order], count)
    (b,) = in_process(vllm, [shuffled], count)  # an engine of its own: from the cache, order could change nothing
    (ref,) = in_process(reference, [order], count)
    return {
        "prompts": count,
        "vllm_vs_transformers_max": float(np.abs(a - ref).max()),
        "vllm_vs_transformers_mean": float(np.abs(a - ref).mean()),
        "again_all_from_cache_max": float(np.abs(a - cached).max()),
        "shuffled_max": float(np.abs(a - b).max()),
        "log_odds_shuffled_max": float(np.abs((a - b)[:, 0] - (a - b)[:, 1]).max()),
        "log_odds_sigma": float((a[:, 0] - a[:, 1]).std()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--prompts", type=int, default=200)
    options = parser.parse_args()
    print(json.dumps({"dtype": options.dtype, **measure(options.dtype, options.prompts)}, indent=1))
