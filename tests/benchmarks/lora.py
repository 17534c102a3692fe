"""Compare an adapter merged into the weights with vLLM's own LoRA support: `python -m tests.benchmarks.lora ADAPTER [--prompts
N] [--rounds N]`.

Scores the same prompts in bfloat16 both ways, in turns, each time in a new process. Prints start-up, tokens per second (shared
prefixes count once per prompt), and the difference of log P(yes) - log P(no).
"""

import argparse
import multiprocessing
import statistics
import time
from typing import Any

import numpy as np

from ragassay.pipeline.engines.adapter import find_adapter
from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_model
from ragassay.pipeline.engines.vllm_engine import VllmSettings, engine_args, sampling_args, set_environment
from ragassay.pipeline.engines.weights import prepare_weights
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from tests.benchmarks.agreement import build_handbook_prompts


def measure(slm: Slm, merged: bool, count: int, result: Any) -> None:
    """Start vLLM, score, and put (start-up seconds, tokens per second, log-odds) into `result`."""
    assert isinstance(slm.engine, VllmSettings)
    set_environment(slm.engine, multiprocessing.cpu_count())
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    folder = str(find_adapter(slm.adapter or ""))
    args = engine_args(
        slm, slm.engine, prepare_model(slm) if merged else prepare_weights(slm.model), cpu=True, window=2048, labels=6, gpus=0
    )
    started = time.perf_counter()
    llm = LLM(**args) if merged else LLM(**args, enable_lora=True, max_loras=1, max_lora_rank=16)
    startup = time.perf_counter() - started
    builder = PromptBuilder(slm, load_tokenizer(slm))
    prompts = build_handbook_prompts(builder, 2 * count)
    labels = [*builder.yes_ids, *builder.no_ids]
    request = None if merged else LoRARequest("adapter", 1, folder)

    def score(part: list[list[int]]) -> Any:
        inputs = [{"prompt_token_ids": prompt} for prompt in part]
        outputs = llm.generate(inputs, SamplingParams(**sampling_args(labels)), lora_request=request, use_tqdm=False)
        first_token_logprobs = [output.outputs[0].logprobs[0] for output in outputs]
        return np.array([[logprobs_by_token[label].logprob for label in labels] for logprobs_by_token in first_token_logprobs])

    score(prompts[:count])  # warm up with other prompts
    started = time.perf_counter()
    logprobs = score(prompts[count:])
    seconds = time.perf_counter() - started
    yes, no = (np.logaddexp.reduce(part, axis=1) for part in np.split(logprobs, [len(builder.yes_ids)], axis=1))
    result.put((startup, sum(map(len, prompts[count:])) / seconds, yes - no))


def render_line(merged: bool, results: list[Any]) -> str:
    startup, rate = (statistics.median(r[i] for r in results) for i in (0, 1))
    return f"{'merged' if merged else 'vLLM LoRA':10} start-up {startup:6.1f} s   {rate:9,.0f} tokens/s"


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("adapter")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    slm = Slm(name="verifier", adapter=options.adapter)
    context = multiprocessing.get_context("spawn")
    results_by_way: dict[bool, list[Any]] = {True: [], False: []}
    for _ in range(options.rounds):
        for merged, results in results_by_way.items():
            queue = context.Queue()
            process = context.Process(target=measure, args=(slm, merged, options.prompts, queue))
            process.start()
            results.append(queue.get(timeout=1800))
            process.join()
            print("round", len(results), render_line(merged, results[-1:]), flush=True)
    for merged, results in results_by_way.items():
        print("median ", render_line(merged, results))
    differences = np.abs(results_by_way[True][0][2] - results_by_way[False][0][2])
    deviation = results_by_way[True][0][2].std()
    print(f"log-odds differ: at most {differences.max():.3f}, mean {differences.mean():.3f}; their deviation {deviation:.3f}")


if __name__ == "__main__":
    main()
