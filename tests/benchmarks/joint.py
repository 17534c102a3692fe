"""Measure one request per response instead of one per sentence: all sentences, with P(yes) read behind each.

    python -m tests.benchmarks.joint FOLDER [--sets NAME …] [--rows 80] [--adapter ADAPTER]

FOLDER is written by `tests.benchmarks.dev_sets`. A joint prompt is `head tail_1 tail_2 …`; behind tail_j the verifier has read
the sentences 1 to j. Prints AUROC of sentences and the tokens of both, with the 95 % interval of the difference, resampled by
response.
"""

import argparse
import os
from itertools import accumulate
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from ragassay.jobs.config.job import load_job
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.engines.light_tokenizer import load_light_tokenizer
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.slm.prompt import PromptBuilder
from tests.benchmarks.labeled_prompts import LabeledPrompts, compute_log_odds, read_set

SETS = ("ragtruth", "begin", "handbook", "everyday", "written_answers", "written_new")

RESAMPLES = 300


def join_prompts(labeled: LabeledPrompts) -> list[tuple[int, ...]]:
    """Return for each sentence the part of the joint prompt that ends behind it."""
    return [tuple(path) for path in accumulate(labeled.prompts.tails, lambda a, b: [*a, *b], initial=labeled.prompts.head)][1:]


def resample_difference(labels: list[list[bool]], first: list[Floats], second: list[Floats]) -> tuple[float, float]:
    """Return the 95 % interval of AUROC(second) - AUROC(first), resampled by response."""
    rng = np.random.default_rng(0)
    differences: list[float] = []
    while len(differences) < RESAMPLES:
        chosen = rng.integers(len(labels), size=len(labels))
        truth = np.concatenate([labels[i] for i in chosen])
        if truth.all() or not truth.any():
            continue
        before, after = (roc_auc_score(truth, np.concatenate([values[i] for i in chosen])) for values in (first, second))
        differences.append(after - before)
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Print one line per set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--adapter")
    options = parser.parse_args()
    slm = load_job(None).members.slms[0]
    slm = slm.model_copy(update={"adapter": options.adapter or slm.adapter})
    engine = TorchSettings().resolve(slm, 0).load_engine(slm, labels=6, gpus=0, threads=os.cpu_count() or 1)
    builder = PromptBuilder(slm, load_light_tokenizer(slm))
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
