"""Train an adapter for a while, from the files of `prepare`: see `tests.benchmarks.gpu_training`.

RESULT/NAME.safetensors has the matrices with the best mean AUROC of the watched logs, RESULT/NAME.jsonl the measurements. The
learning rate falls to 0 as a cosine over the steps, or over --seconds if they pass sooner. --found weights the public sets.
"""

import argparse
import json
import lzma
import math
import pickle
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from tests.benchmarks.gpu_training.examples import HELD_OUT, Tree, join, make_batches, make_tree
from tests.benchmarks.gpu_training.model import (
    LoraModel,
    compute_batch_loss,
    compute_logprobs,
    find_lowest,
    load_model,
    save_adapter,
)

OWN = ("answers", "answers3", "answers4", "answers5", "statements", "summaries", "handbook", "by rule")
Labels = tuple[list[int], list[int]]
WARM_UP_STEPS = 30


def plan_steps(trees: Mapping[str, Sequence[Tree]], epochs: int, found: float, tokens: int, seed: int) -> list[list[Tree]]:
    """Return the trees of each step: own data once per epoch, of the public sets a share of it."""
    rng = random.Random(seed)
    steps: list[list[Tree]] = [[]]
    for _ in range(epochs):
        epoch = [
            tree
            for source, part in trees.items()
            for tree in (part if source in OWN else rng.sample(part, round(found * len(part))))
        ]
        rng.shuffle(epoch)
        for tree in epoch:
            if sum(len(t.tokens) for t in steps[-1]) >= tokens:
                steps.append([])
            steps[-1].append(tree)
    return steps


def weigh_classes(trees: Sequence[Tree]) -> tuple[float, float]:
    """Return weights that give both classes the same total."""
    weights, supported = join(trees, "weights"), join(trees, "supported")
    good, bad = float(weights[supported].sum()), float(weights[~supported].sum())
    return (good + bad) / 2 / good, (good + bad) / 2 / bad


def measure(model: LoraModel, trees: Sequence[Tree], labels: Labels, area: int) -> float:
    """Return the AUROC of the log-odds."""
    values, truth = [], []
    with torch.inference_mode():
        for batch in make_batches(trees, area):
            values += find_lowest(compute_logprobs(model, batch, *labels), batch).tolist()
            truth += join(batch, "supported").tolist()
    return float(roc_auc_score(truth, values))


def read_trees(folder: Path, model: LoraModel) -> tuple[dict[str, list[Tree]], dict[str, list[Tree]], Labels]:
    """Read the trees to train on by source, the watched ones by log, and the token ids of yes and no."""
    with lzma.open(folder / "examples.pkl.xz") as file:
        examples = pickle.load(file)
    training, watched = (
        {name: [make_tree(group, model.rows) for group in groups] for name, groups in examples[part].items()}
        for part in ("train", "watched")
    )
    return training, watched, (examples["yes"], examples["no"])


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--name", default="adapter")
    parser.add_argument("--adapter", type=Path, help="adapter_model.safetensors to train on from")
    for name, default in {"rank": 16, "epochs": 2, "step": 8192, "area": 16384, "measurements": 2, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, value in {"rate": 2e-4, "found": 1.0, "seconds": 1e9}.items():
        parser.add_argument(f"--{name}", type=float, default=value)
    return parser.parse_args()


def main() -> None:
    """Train."""
    options = read_options()
    options.result.mkdir(parents=True, exist_ok=True)
    model = load_model(options.folder, options.rank, options.seed, options.adapter)
    training, watched, labels = read_trees(options.folder, model)
    steps = plan_steps(training, options.epochs, options.found, options.step, options.seed)
    classes = weigh_classes([tree for step in steps for tree in step])
    parameters = [matrix for lora in model.matrices.values() for matrix in (lora.a, lora.b)]
    optimizer = torch.optim.AdamW(parameters, lr=options.rate, weight_decay=0.0)
    tokens = skipped = measured = 0
    losses: list[float] = []
    best, start = -1.0, time.monotonic()
    for number, step in enumerate(steps):
        share = min(1.0, max(number / len(steps), (time.monotonic() - start) / options.seconds))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, (number + 1) / WARM_UP_STEPS) * 0.5 * (1 + math.cos(math.pi * share))
        count = len(join(step, "supported"))
        losses.append(0.0)
        for batch in make_batches(step, options.area):
            loss = compute_batch_loss(compute_logprobs(model, batch, *labels), batch, classes) / count
            loss.backward()
            losses[-1] += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        if torch.isfinite(norm):  # one step with a gradient of NaN would spoil all matrices
            optimizer.step()
        skipped += not torch.isfinite(norm)
        optimizer.zero_grad(set_to_none=True)
        tokens += sum(len(tree.tokens) for tree in step)
        is_last = share >= 1 or number + 1 == len(steps)
        if is_last or share >= (measured + 1) / options.measurements:
            measured += 1
            aurocs = {name: measure(model, part, labels, options.area) for name, part in watched.items()}
            mean = float(np.mean([value for name, value in aurocs.items() if name != HELD_OUT]))
            line: dict[str, Any] = {
                "step": number + 1,
                "tokens": tokens,
                "seconds": time.monotonic() - start,
                "skipped": int(skipped),
            }
            line |= {"loss": float(np.mean(losses)), "watched": aurocs, "mean": mean}
            print(json.dumps(line), flush=True)
            with (options.result / f"{options.name}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            losses = []
            if mean > best:
                best = mean
                save_adapter(model, options.result / f"{options.name}.safetensors")
        elif number in (5, 50):
            print(f"step {number}: loss {np.mean(losses):.3f}, {tokens / (time.monotonic() - start):.0f} tokens/s", flush=True)
        if is_last:
            break


if __name__ == "__main__":
    main()
