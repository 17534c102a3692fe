"""Padded batches of token trees have the same loss as the packs of `ragassay tune`."""

from random import Random

import numpy as np
import pytest

from ragassay.jobs.training.examples import ContextGroup
from ragassay.pipeline.training.loss import LabeledExample, StatementPair, compute_loss, find_pair_indices
from tests.benchmarks.gpu_training.examples import Tree, make_batches, make_tree, pad
from tests.benchmarks.gpu_training.prepare import pack_group

torch = pytest.importorskip("torch")


def make_group(rng: Random) -> ContextGroup:
    """Make a group of four examples, one of them with two prompts, and a pair."""
    context = [rng.randrange(90) for _ in range(rng.randrange(5, 40))]
    prompts = [tuple(context + [rng.randrange(90) for _ in range(rng.randrange(1, 9))] + [i]) for i in range(5)]
    units = [
        LabeledExample((prompts[0],), True),
        LabeledExample((prompts[1],), False, 0.5, 0.1),
        LabeledExample((prompts[2], prompts[3]), False, 0.7),
        LabeledExample((prompts[4],), True, 0.3, 0.05),
    ]
    return ContextGroup("0", units, 0, [StatementPair(prompts[0], prompts[1])])


def test_padded_trees_contain_every_prompt() -> None:
    groups = [make_group(Random(seed)) for seed in range(6)]
    trees = [make_tree(pack_group(group), np.arange(100)) for group in groups]
    for batch in make_batches(trees, 200):
        tokens, positions, sizes, ends = (array.ravel() for array in pad(batch))
        prompts = [prompt for tree in batch for unit in groups[find(trees, tree)].units for prompt in unit.prompts]
        for end, prompt in zip(ends, prompts, strict=True):
            row = slice(end // (len(tokens) // len(batch)) * (len(tokens) // len(batch)), end + 1)
            is_ancestor = np.arange(row.start, row.stop) + sizes[row] > end
            assert tokens[row][is_ancestor].tolist() == list(prompt)
            assert positions[row][is_ancestor].tolist() == list(range(len(prompt)))


def test_the_loss_of_a_batch_is_that_of_tune() -> None:
    from tests.benchmarks.gpu_training.model import compute_batch_loss

    groups = [make_group(Random(seed)) for seed in range(4)]
    batch = [make_tree(pack_group(group), np.arange(100)) for group in groups]
    units = [unit for group in groups for unit in group.units]
    logprobs = torch.log(torch.rand(sum(len(unit.prompts) for unit in units), 2) / 2)
    pairs = find_pair_indices([pair for group in groups for pair in group.pairs], units)
    expected, _ = compute_loss(logprobs, units, (0.8, 1.4), pairs)
    assert compute_batch_loss(logprobs, batch, (0.8, 1.4)).item() == pytest.approx(expected.item(), rel=1e-5)


def find(trees: list[Tree], wanted: Tree) -> int:
    """Return the index of a tree."""
    return next(i for i, tree in enumerate(trees) if tree is wanted)
