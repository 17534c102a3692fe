"""Pack prompts into a token tree: one sequence that contains every shared prefix once.

Sorting the prompts gives the depth-first order of the tree: prompts that agree up to a token share it. A token attends to its
ancestors and itself, and its position is its depth, so every prompt gets the same hidden states as it would alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np

from ragassay.pipeline.arrays import Bools, Ints

TokenSequence = Sequence[int]


@dataclass(frozen=True)
class TokenTree:
    """A token tree in depth-first order, n tokens.

    Attributes:
        tokens: (n) token ids.
        positions: (n) depth of each token, which is its position in every prompt that contains it.
        subtree_sizes: (n) tokens in the subtree of each token, including itself: the subtree of i is [i, i + subtree_sizes[i]).
        prompt_ends: (prompts) index of each prompt's last token, in the order of the prompts that were passed.
    """

    tokens: Ints
    positions: Ints
    subtree_sizes: Ints
    prompt_ends: Ints

    def attention_mask(self) -> Bools:
        """Return (n, n): whether token i attends to token j, which is i itself or an ancestor of i."""
        index = np.arange(len(self.tokens))
        return (index <= index[:, None]) & (index[:, None] < index + self.subtree_sizes)


def build_tree(prompts: Sequence[TokenSequence]) -> TokenTree:
    """Pack prompts into a tree.

    Args:
        prompts: Token ids of each prompt, at least one; equal prompts share their last token.
    """
    order, paths, shared = sort_prompts(prompts)
    stops = np.cumsum([len(path) - depth for path, depth in zip(paths, shared, strict=True)])
    starts = [0, *stops[:-1].tolist()]
    ends = np.empty(len(prompts), dtype=np.int64)
    ends[order] = stops - 1
    subtree_stops = np.empty(stops[-1], dtype=np.int64)
    next_branch = np.full(max(map(len, paths)), stops[-1])  # depth -> first token of the next prompt that branches off above it
    for start, stop, depth in reversed(list(zip(starts, stops.tolist(), shared, strict=True))):
        subtree_stops[start:stop] = next_branch[depth : depth + stop - start]
        next_branch[depth:] = start
    return TokenTree(
        tokens=np.concatenate([path[depth:] for path, depth in zip(paths, shared, strict=True)]),
        positions=np.concatenate([np.arange(depth, len(path)) for path, depth in zip(paths, shared, strict=True)]),
        subtree_sizes=subtree_stops - np.arange(stops[-1]),
        prompt_ends=ends,
    )


def count_tree_tokens(prompts: Iterable[TokenSequence]) -> int:
    """Count the tokens of the tree of prompts: the minimum that must be computed."""
    _, paths, shared = sort_prompts(list(prompts))
    return sum(map(len, paths)) - sum(shared)


def sort_prompts(prompts: Sequence[TokenSequence]) -> tuple[list[int], list[Ints], list[int]]:
    """Sort prompts by their tokens, the depth-first order of their tree.

    Returns:
        The indices of the prompts in this order, their token ids, and how many tokens each shares with its predecessor.
    """
    order = sorted(range(len(prompts)), key=lambda i: tuple(prompts[i]))
    paths = [np.fromiter(prompts[i], np.int64, len(prompts[i])) for i in order]
    return order, paths, [0, *starmap(count_shared_tokens, pairwise(paths))][: len(order)]


def count_shared_tokens(first: TokenSequence | Ints, second: TokenSequence | Ints) -> int:
    """Count the tokens at the start of two prompts that are equal."""
    length = min(len(first), len(second))
    different = np.flatnonzero(np.not_equal(first[:length], second[:length]))
    return int(different[0]) if len(different) else length
