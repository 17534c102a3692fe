"""Prompts packed into one sequence in which every shared prefix stands once (a token tree).

Sorted prompts are a tree's depth-first order: a token is put down once for all prompts that agree up to it. A token sees its
ancestors and itself, and its position is its depth, so every prompt gets the very hidden states that it would get alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Ints

Ids = Sequence[int]


@dataclass(frozen=True)
class Tree:
    """A token tree in depth-first order, n tokens.

    Attributes:
        tokens: (n) token ids.
        positions: (n) depth of each token: its position in every prompt that has it.
        sizes: (n) tokens of the subtree of each token, itself included: the subtree of i is i to i + sizes[i].
        ends: (prompts) where each prompt's last token stands, in the order in which the prompts were given.
    """

    tokens: Ints
    positions: Ints
    sizes: Ints
    ends: Ints

    def sees(self) -> Bools:
        """(n, n): whether token i may attend to token j: j is i or an ancestor of it."""
        place = np.arange(len(self.tokens))
        return (place <= place[:, None]) & (place[:, None] < place + self.sizes)


def grow(prompts: Sequence[Ids]) -> Tree:
    """Pack prompts into a tree.

    Args:
        prompts: Token ids of each, at least one token; equal prompts share their end.
    """
    tokens: list[int] = []
    positions: list[int] = []
    sizes: list[int] = []
    ends = np.zeros(len(prompts), dtype=np.int64)
    path: list[int] = []  # places of the tokens of the prompt before
    for i in sorted(range(len(prompts)), key=lambda i: tuple(prompts[i])):
        prompt = prompts[i]
        shared = _shared(prompt, [tokens[at] for at in path])
        for at in path[shared:]:
            sizes[at] = len(tokens) - at
        del path[shared:]
        for depth in range(shared, len(prompt)):
            path.append(len(tokens))
            tokens.append(prompt[depth])
            positions.append(depth)
            sizes.append(0)
        ends[i] = path[len(prompt) - 1]
    for at in path:
        sizes[at] = len(tokens) - at
    return Tree(np.array(tokens), np.array(positions), np.array(sizes), ends)


def size(prompts: Iterable[Ids]) -> int:
    """Tokens of the tree of some prompts: the least that has to be computed."""
    count, before = 0, tuple[int, ...]()
    for prompt in sorted(map(tuple, prompts)):
        count += len(prompt) - _shared(prompt, before)
        before = prompt
    return count


def _shared(one: Ids, other: Ids) -> int:
    """Tokens at the start in which two prompts agree."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))
