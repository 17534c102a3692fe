"""Attention over a token tree: blocks of queries, each with only the keys that one of them may see.

On a CPU this takes about a third of the time of PyTorch's masked attention over the whole tree (tests/benchmarks/tuning.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.token_tree import errors
from ragassay.pipeline.token_tree.tree import Tree

NAME = "token_tree"
BLOCK = 128


@dataclass(frozen=True)
class Block:
    """Queries start to stop of a tree, places of the k keys that they see, and a mask (queries, k) of 0 and minus infinity."""

    start: int
    stop: int
    keys: Any
    mask: Any


def blocks_of(tree: Tree, device: Any) -> list[Block]:
    """Cut a tree into blocks of queries."""
    import torch

    sees = tree.sees()
    blocks = []
    for start in range(0, len(sees), BLOCK):
        rows = sees[start : start + BLOCK]
        keys = np.flatnonzero(rows.any(axis=0))
        mask = torch.zeros(rows.shape[0], len(keys)).masked_fill_(torch.from_numpy(~rows[:, keys]), float("-inf"))
        blocks.append(Block(start, start + rows.shape[0], torch.from_numpy(keys).to(device), mask.to(device)))
    return blocks


def tree_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float,
    dropout: float = 0.0,
    *,
    blocks: list[Block],
    look: Callable[[int, Any], None] | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """softmax(q k' scaling + mask) v, a block at a time; the attention function that transformers calls.

    Args:
        module: The attention layer.
        query: (1, heads, tokens, size).
        key: (1, heads / groups, tokens, size).
        value: Like key.
        attention_mask: Unused: the blocks have their own.
        scaling: Factor of the scores.
        dropout: Unused: there is none.
        blocks: Of the tree.
        look: Shown the weights of every block, with its number: float32 (heads, queries, keys), M of the formula.
        options: What else a model asks of its attention.

    Returns:
        (1, tokens, heads, size), and no weights.

    Raises:
        ModelError: The model asks for something that this attention has not.
    """
    import torch

    odd = [name for name in ("softcap", "s_aux", "sliding_window") if options.get(name) is not None]
    if odd:
        raise ModelError(errors.ATTENTION, module=type(module).__name__, parts=", ".join(odd))
    _, heads, _, width = query.shape
    groups = key.shape[1]
    outputs = []
    for number, block in enumerate(blocks):
        rows = block.stop - block.start
        asked = query[0, :, block.start : block.stop].reshape(groups, heads // groups * rows, width)
        keys, values = (states[0].index_select(1, block.keys) for states in (key, value))
        scores = torch.matmul(asked, keys.transpose(1, 2)).float().view(heads, rows, -1)
        weights = torch.softmax(torch.add(block.mask, scores, alpha=scaling), dim=-1)
        if look is not None:
            look(number, weights)
        weights = weights.to(query.dtype).view(groups, heads // groups * rows, -1)
        outputs.append(torch.matmul(weights, values).view(heads, rows, width))
    return torch.cat(outputs, dim=1).transpose(0, 1)[None], None


def register() -> None:
    """Make the attention known to transformers, under NAME."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, tree_attention)
