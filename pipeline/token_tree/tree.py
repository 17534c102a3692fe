"""Pack prompts into a token tree: one sequence that contains every shared prefix once.

Sorting the prompts gives the depth-first order of the tree: prompts that agree up to a token share it. A token attends to its
ancestors and itself, and its position is its depth, so every prompt gets the same hidden states as it would alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
    tokens: list[int] = []
    positions: list[int] = []
    sizes: list[int] = []
    ends = np.zeros(len(prompts), dtype=np.int64)
    path: list[int] = []  # indices of the tokens of the previous prompt
    for i in sorted(range(len(prompts)), key=lambda i: tuple(prompts[i])):
        prompt = prompts[i]
        shared = count_shared_tokens(prompt, [tokens[index] for index in path])
        for index in path[shared:]:
            sizes[index] = len(tokens) - index
        del path[shared:]
        for depth in range(shared, len(prompt)):
            path.append(len(tokens))
            tokens.append(prompt[depth])
            positions.append(depth)
            sizes.append(0)
        ends[i] = path[len(prompt) - 1]
    for index in path:
        sizes[index] = len(tokens) - index
    return TokenTree(np.array(tokens), np.array(positions), np.array(sizes), ends)


def count_tree_tokens(prompts: Iterable[TokenSequence]) -> int:
    """Count the tokens of the tree of prompts: the minimum that must be computed."""
    count, previous = 0, tuple[int, ...]()
    for prompt in sorted(map(tuple, prompts)):
        count += len(prompt) - count_shared_tokens(prompt, previous)
        previous = prompt
    return count


def count_shared_tokens(first: TokenSequence, second: TokenSequence) -> int:
    """Count the tokens at the start of two prompts that are equal."""
    for i, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return i
    return min(len(first), len(second))
