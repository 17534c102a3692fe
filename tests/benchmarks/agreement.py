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

from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter, split_sentences

HANDBOOK = Path(__file__).parents[2] / "jobs" / "data" / "handbook" / "logs"
Prompts = list[list[int]]


def handbook_prompts(builder: PromptBuilder, count: int) -> Prompts:
    """The first prompts of the bundled logs, as the job makes them."""
    nlp = load_splitter("sentencizer", "en")
    prompts: Prompts = []
    for row in pq.read_table(HANDBOOK).to_pylist():
        sentences = [row["response"][a:b] for a, b in split_sentences(nlp, [row["response"]])[0]]
        (encoded,) = builder.encode([(row["question"], row["context"], sentences)])
        prompts.extend(map(list, encoded.prompts()))
        if len(prompts) >= count:
            break
    return prompts[:count]


def score(slm: Slm, orders: list[list[int]], count: int, result: Any) -> None:
    """Score the same prompts once an order, in one process with one engine; puts log P(yes), log P(no) back in place."""
    engine = slm.load_engine(threads=multiprocessing.cpu_count())
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


def differences(dtype: str, count: int, adapter: str | None = None) -> dict[str, float]:
    """Largest and mean absolute difference of log P(yes) and log P(no) between vLLM and transformers."""
    order = list(range(count))
    (vllm,) = in_process(_slm("vllm", dtype, adapter), [order], count)
    (reference,) = in_process(_slm("transformers", dtype, adapter), [order], count)
    apart = np.abs(vllm - reference)
    return {"max": float(apart.max()), "mean": float(apart.mean()), "log_odds_sigma": float((vllm[:, 0] - vllm[:, 1]).std())}


def noise(dtype: str, count: int) -> dict[str, float]:
    """What another order, so other batches, changes in vLLM alone; each order has an engine of its own, with an empty cache."""
    order = list(range(count))
    (a,) = in_process(_slm("vllm", dtype), [order], count)
    (b,) = in_process(_slm("vllm", dtype), [random.Random(1).sample(order, count)], count)
    odds = (a - b)[:, 0] - (a - b)[:, 1]
    return {"max": float(np.abs(a - b).max()), "mean": float(np.abs(a - b).mean()), "log_odds_max": float(np.abs(odds).max())}


def _slm(engine: str, dtype: str, adapter: str | None = None) -> Slm:
    return Slm.model_validate({"name": engine, "engine": engine, "dtype": dtype, "adapter": adapter})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--adapter", help="bundled adapter, or a folder")
    options = parser.parse_args()
    found = {
        "dtype": options.dtype,
        "vllm_vs_transformers": differences(options.dtype, options.prompts, options.adapter),
        "vllm_shuffled": noise(options.dtype, options.prompts),
    }
    print(json.dumps(found, indent=1))
