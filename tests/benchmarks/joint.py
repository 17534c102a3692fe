"""Measure one request per response instead of one per sentence: all sentences, with P(yes) read behind each.

    python -m tests.benchmarks.joint FOLDER [--sets NAME …] [--rows 80] [--adapter ADAPTER] [--seconds]

FOLDER is written by `tests.benchmarks.dev_sets`. A joint prompt is `head tail_1 tail_2 …`; behind tail_j the verifier has read
the sentences 1 to j. Prints AUROC of sentences and the tokens of both, with the 95 % interval of the difference, resampled by
response. With --seconds it prints instead how long vLLM takes for both, with the verifier and with a model that costs nothing
(`tests.benchmarks.ceiling`), on one core. vLLM computes log-probabilities inside a prompt for all of its positions
(`prompt_logprobs`), or for some (`prompt_logprob_token_ids`) with Triton, which a CPU does not have; a request without any is a
lower bound of that.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from ragassay.jobs.config.job import load_job
from ragassay.pipeline.engines.light_tokenizer import load_light_tokenizer
from ragassay.pipeline.engines.prepare import prepare_model
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.engines.vllm_engine import VllmSettings, sampling_args, start_vllm
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from tests.benchmarks.ceiling import write_free_model
from tests.benchmarks.labeled_prompts import LabeledPrompts, compute_log_odds, read_set, resample_difference

SETS = ("ragtruth", "begin", "handbook", "everyday", "written_answers", "written_new")

ROUNDS = 3


def join_prompts(labeled: LabeledPrompts) -> list[tuple[int, ...]]:
    """Return for each sentence the part of the joint prompt that ends behind it."""
    return [tuple(path) for path in accumulate(labeled.prompts.tails, lambda a, b: [*a, *b], initial=labeled.prompts.head)][1:]


def time_vllm(slm: Slm, labeled: list[LabeledPrompts], label_ids: list[int]) -> Iterator[str]:
    """Yield a line per way with the seconds of vLLM in each round; a first round is not counted."""
    from torch._dynamo import config
    from vllm import SamplingParams

    def parameters(**arguments: Any) -> SamplingParams:
        return SamplingParams(**sampling_args(label_ids) | arguments)

    llm = start_vllm(slm, VllmSettings(dtype="float32"), labels=6, gpus=0, threads=1, tokenizer=False)
    separate = sorted({path for row in labeled for path in row.prompts.prompts()})
    joint = [join_prompts(row)[-1] for row in labeled]
    ways: dict[str, tuple[list[tuple[int, ...]], list[SamplingParams]]] = {
        "one request per sentence": (separate, [parameters()] * len(separate)),
        "one request per response, no log-probabilities inside": (joint, [parameters()] * len(joint)),
        "one request per response, prompt_logprobs": (joint, [parameters(prompt_logprobs=1)] * len(joint)),
    }
    for name, (prompts, arguments) in ways.items():
        seconds = []
        for _ in range(1 + ROUNDS):
            llm.reset_prefix_cache()
            started = time.perf_counter()
            with config.patch(disable=True):  # see `VllmEngine.label_logprobs`
                llm.generate([{"prompt_token_ids": list(prompt)} for prompt in prompts], arguments, use_tqdm=False)
            seconds.append(time.perf_counter() - started)
        rounds = ", ".join(f"{value:.2f}" for value in seconds[1:])
        yield f"{name}: {len(prompts)} requests, {sum(map(len, prompts)):,} tokens, {rounds} s"


def print_seconds(slm: Slm, builder: PromptBuilder, labeled: list[LabeledPrompts]) -> None:
    """Print the seconds of vLLM, with the verifier and with a model that costs nothing."""
    label_ids = [*builder.yes_ids, *builder.no_ids]
    with tempfile.TemporaryDirectory() as scratch:
        free_model = f"{scratch}/free"
        write_free_model(Path(prepare_model(slm)), Path(free_model))
        for name, model in (("free model", slm.model_copy(update={"model": free_model, "adapter": None})), (slm.name, slm)):
            for line in time_vllm(model, labeled, label_ids):
                print(f"{name}, {line}", flush=True)


def main() -> None:
    """Print one line per set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--adapter")
    parser.add_argument("--seconds", action="store_true")
    options = parser.parse_args()
    slm = load_job(None).members.slms[0]
    slm = slm.model_copy(update={"adapter": options.adapter or slm.adapter})
    builder = PromptBuilder(slm, load_light_tokenizer(slm))
    if options.seconds:
        print_seconds(
            slm, builder, [row for name in options.sets for row in read_set(options.folder, name, options.rows, builder)]
        )
        return
    engine = TorchSettings().resolve(slm, 0).load_engine(slm, labels=6, gpus=0, threads=os.cpu_count() or 1)
    for name in options.sets:
        labeled = read_set(options.folder, name, options.rows, builder)
        labels = [row.supported for row in labeled]
        truth, ends = np.concatenate(labels), np.cumsum(list(map(len, labels)))[:-1]
        odds, tokens = zip(
            *(
                compute_log_odds(engine, builder, [prompt for row in labeled for prompt in prompts(row)])
                for prompts in (lambda row: row.prompts.prompts(), join_prompts)
            ),
            strict=True,
        )
        separate, joint = (roc_auc_score(truth, values) for values in odds)
        low, high = resample_difference(labels, *(np.split(values, ends) for values in odds))
        print(
            f"{name:16} {len(truth)} sentences of {len(labeled)} responses: AUROC {separate:.3f} separate, {joint:.3f} joint "
            f"({low:+.3f} to {high:+.3f}); tokens computed {tokens[0]:,} and {tokens[1]:,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
