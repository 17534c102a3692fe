"""Labeled prompts as `prepare` writes them and `train` batches them."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.token_tree.tree import build_tree

HELD_OUT = "held out"
"""Name of the held-out contexts of the mix among the watched logs."""


class PackedUnit(NamedTuple):
    """A labeled example without the tokens that its group shares; see `pipeline.training.loss.LabeledExample`."""

    suffixes: list[Ints]
    supported: bool
    weight: float
    smoothing: float


class PackedGroup(NamedTuple):
    """Labeled examples about one context.

    Attributes:
        prefix: Token ids that all prompts begin with.
        units: The examples.
        pairs: Indices of the supported and of the unsupported example of minimal pairs.
    """

    prefix: Ints
    units: list[PackedUnit]
    pairs: list[tuple[int, int]]


class Tree(NamedTuple):
    """The token tree of a group with n tokens, and its labels.

    Attributes:
        tokens: (n) rows of the carried embeddings.
        positions: (n) position of each token in its prompt.
        sizes: (n) tokens of the subtree that begins at each token.
        ends: (prompts) index of each prompt's last token.
        owners: (prompts) example of each prompt.
        supported: (examples) labels.
        weights: (examples) weights in the loss.
        smoothing: (examples) probability that the label is wrong.
        pairs: See `PackedGroup`.
    """

    tokens: Ints
    positions: Ints
    sizes: Ints
    ends: Ints
    owners: Ints
    supported: Bools
    weights: Floats
    smoothing: Floats
    pairs: list[tuple[int, int]]


def make_tree(group: PackedGroup, rows: Ints) -> Tree:
    """Build the token tree of a group; `rows` maps a token id to its row of the carried embeddings."""
    prefix = rows[group.prefix].tolist()
    prompts = [prefix + rows[suffix].tolist() for unit in group.units for suffix in unit.suffixes]
    tree = build_tree(prompts)
    return Tree(
        tree.tokens,
        tree.positions,
        tree.subtree_sizes,
        tree.prompt_ends,
        np.repeat(np.arange(len(group.units)), [len(unit.suffixes) for unit in group.units]),
        np.array([unit.supported for unit in group.units]),
        np.array([unit.weight for unit in group.units], dtype=np.float32),
        np.array([unit.smoothing for unit in group.units], dtype=np.float32),
        group.pairs,
    )


def make_batches(trees: Iterable[Tree], area: int) -> list[list[Tree]]:
    """Put trees of similar size together: (trees of a batch) x (tokens of its largest tree) is at most `area`."""
    batches: list[list[Tree]] = [[]]
    for tree in sorted(trees, key=lambda tree: len(tree.tokens)):
        if batches[-1] and (len(batches[-1]) + 1) * len(tree.tokens) > area:
            batches.append([])
        batches[-1].append(tree)
    return batches


def pad(batch: Sequence[Tree]) -> tuple[Ints, Ints, Ints, Ints]:
    """Pad a batch of B trees to L tokens; a token of padding attends to itself.

    Returns:
        Tokens, positions and subtree sizes (B, L), and the ends of all prompts as indices into B * L.
    """
    length = -(-max(len(tree.tokens) for tree in batch) // 8) * 8
    tokens, positions, sizes = (np.full((len(batch), length), value, dtype=np.int64) for value in (0, 0, 1))
    for i, tree in enumerate(batch):
        for target, source in ((tokens, tree.tokens), (positions, tree.positions), (sizes, tree.sizes)):
            target[i, : len(source)] = source
    return tokens, positions, sizes, np.concatenate([i * length + tree.ends for i, tree in enumerate(batch)])


def join(batch: Sequence[Tree], name: str) -> Any:
    """Join a field of all trees of a batch."""
    return np.concatenate([getattr(tree, name) for tree in batch])


def join_owners(batch: Sequence[Tree]) -> Ints:
    """Return the owners as indices into the examples of the whole batch."""
    return np.concatenate([tree.owners + first for tree, first in zip(batch, _find_first_examples(batch), strict=True)])


def join_pairs(batch: Sequence[Tree]) -> list[tuple[int, int]]:
    """Return the pairs as indices into the examples of the whole batch."""
    return [
        (a + first, b + first) for tree, first in zip(batch, _find_first_examples(batch), strict=True) for a, b in tree.pairs
    ]


def _find_first_examples(batch: Sequence[Tree]) -> list[int]:
    """Return the index of each tree's first example."""
    return list(accumulate((len(tree.supported) for tree in batch[:-1]), initial=0))
