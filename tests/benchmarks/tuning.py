"""Measure the speed of a training step on token trees: `python -m tests.benchmarks.tuning LOGS [--rounds N]`.

Runs the same labeled prompts of a few contexts forward and backward in four ways: padded batches of prompts; token trees with
PyTorch's masked attention; token trees with our attention, with peft's LoRA or with merged LoRA. Prints medians of interleaved
rounds in one process.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ragassay.jobs.config.input import Columns
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.training.examples import read_examples, split_large_groups
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter
from ragassay.pipeline.token_tree.attention import ATTENTION_NAME
from ragassay.pipeline.token_tree.tree import build_tree
from ragassay.pipeline.training.loss import LabeledExample, compute_loss
from ragassay.pipeline.training.trainable_model import compute_label_logprobs, load_for_training

PACK = 2048
BATCH = 4  # padded prompts in a forward pass; more were slower on 2 cores


def run_trees(model: Any, units: Sequence[LabeledExample], labels: tuple[list[int], list[int]]) -> None:
    """Run one tree with our attention."""
    tree = build_tree([prompt for unit in units for prompt in unit.prompts])
    compute_loss(compute_label_logprobs(model, tree, *labels), units, (1.0, 1.0))[0].backward()


def run_masked_trees(model: Any, units: Sequence[LabeledExample], labels: tuple[list[int], list[int]]) -> None:
    """Run one tree with PyTorch's masked attention."""
    base = model.get_base_model()
    tree = build_tree([prompt for unit in units for prompt in unit.prompts])
    hidden = torch.from_numpy(~tree.attention_mask())[None, None]
    mask = torch.zeros(hidden.shape, dtype=base.dtype).masked_fill_(hidden, torch.finfo(base.dtype).min)
    with torch.autocast("cpu", base.dtype):
        states = base.model(
            input_ids=torch.from_numpy(tree.tokens)[None],
            position_ids=torch.from_numpy(tree.positions)[None],
            attention_mask=mask,
            use_cache=False,
        ).last_hidden_state[0]
        logits = base.lm_head(states[torch.from_numpy(tree.prompt_ends)])
    _backward(logits, units, labels)


def run_padded_batches(model: Any, units: Sequence[LabeledExample], labels: tuple[list[int], list[int]]) -> None:
    """Run prompts in padded batches."""
    base = model.get_base_model()
    prompts = sorted(
        (LabeledExample((prompt,), unit.supported) for unit in units for prompt in unit.prompts),
        key=lambda u: len(u.prompts[0]),
    )
    for start in range(0, len(prompts), BATCH):
        batch = prompts[start : start + BATCH]
        width = max(len(unit.prompts[0]) for unit in batch)
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, unit in enumerate(batch):
            ids[row, width - len(unit.prompts[0]) :] = torch.tensor(unit.prompts[0])
            mask[row, width - len(unit.prompts[0]) :] = 1
        with torch.autocast("cpu", base.dtype):
            states = base.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, -1]
            logits = base.lm_head(states)
        _backward(logits, batch, labels)


def _backward(logits: Any, units: Sequence[LabeledExample], labels: tuple[list[int], list[int]]) -> None:
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    label_logprobs = torch.stack([logprobs[:, words].logsumexp(-1) for words in labels], dim=1)
    compute_loss(label_logprobs, units, (1.0, 1.0))[0].backward()


WAYS: dict[str, tuple[Callable[..., None], str, bool]] = {
    "padded batches": (run_padded_batches, "sdpa", False),
    "token trees, PyTorch's attention": (run_masked_trees, "sdpa", False),
    "token trees, our attention": (run_trees, ATTENTION_NAME, False),
    "token trees, ours, LoRA merged": (run_trees, ATTENTION_NAME, True),
}


def main() -> None:
    """Print labels per second of each way, and the ratio to the first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("logs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contexts", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--layers", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    slm = Slm(name="smollm2")
    builder = PromptBuilder(slm, load_tokenizer(slm))
    nlp = load_splitter("sentencizer", "en")
    examples = read_examples(options.logs, LabelSource("label"), Columns(row_id=None), slm, builder, nlp, 4096)
    groups = split_large_groups(examples.groups, PACK)[: options.contexts]
    model = load_for_training(slm, rank=options.rank, layers=options.layers or None, seed=0)
    merged_forwards = {module: vars(module)["forward"] for module in model.modules() if "forward" in vars(module)}
    labels = (builder.yes_ids, builder.no_ids)
    count = sum(len(unit.prompts) for group in groups for unit in group.units)
    tokens = sum(group.tokens for group in groups)
    prompt_tokens = sum(len(prompt) for group in groups for unit in group.units for prompt in unit.prompts)
    print(f"{count} prompts over {len(groups)} trees: {tokens:,} tokens in the trees, {prompt_tokens:,} in the prompts")
    seconds: dict[str, list[float]] = {}
    for _ in range(options.rounds + 1):
        for name, (way, attention, merged) in WAYS.items():
            model.get_base_model().set_attn_implementation(attention)
            for module, forward in merged_forwards.items():
                module.__dict__.pop("forward", None)
                if merged:
                    module.forward = forward
            started = time.perf_counter()
            for group in groups:
                way(model, group.units, labels)
            seconds.setdefault(name, []).append(time.perf_counter() - started)
    padded_seconds = statistics.median(seconds["padded batches"][1:])  # the first round warms up
    for name, times in seconds.items():
        median = statistics.median(times[1:])
        print(f"{name:34} {count / median:6.1f} labels/s   {padded_seconds / median:5.2f}")


if __name__ == "__main__":
    main()
