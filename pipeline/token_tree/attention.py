"""Compute attention over a token tree: in blocks of queries, each with only the keys that its queries attend to.

On a CPU this takes about a third of the time of PyTorch's masked attention over the whole tree (tests/benchmarks/tuning.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.token_tree import errors
from ragassay.pipeline.token_tree.tree import TokenTree

ATTENTION_NAME = "token_tree"
BLOCK_SIZE = 128


@dataclass(frozen=True)
class AttentionBlock:
    """Consecutive queries of a tree and the k keys that they attend to.

    Attributes:
        start: First query.
        stop: End of the queries, exclusive.
        keys: (k) positions of the keys in the tree.
        mask: (queries, k): 0 if the query attends to the key, else minus infinity.
    """

    start: int
    stop: int
    keys: Any
    mask: Any


def split_into_blocks(tree: TokenTree, device: Any) -> list[AttentionBlock]:
    """Split the queries of a tree into blocks."""
    import torch

    stops = np.arange(len(tree.tokens)) + tree.subtree_sizes
    blocks = []
    for start in range(0, len(stops), BLOCK_SIZE):
        queries = np.arange(start, min(start + BLOCK_SIZE, len(stops)))
        keys = np.concatenate([np.flatnonzero(stops[:start] > start), queries])  # the ancestors of the first query come first
        attends = (keys <= queries[:, None]) & (queries[:, None] < stops[keys])
        mask = torch.zeros(attends.shape).masked_fill_(torch.from_numpy(~attends), float("-inf"))
        blocks.append(AttentionBlock(start, start + len(queries), torch.from_numpy(keys).to(device), mask.to(device)))
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
    blocks: list[AttentionBlock],
    record: Callable[[int, Any], None] | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """Compute softmax(q k' scaling + mask) v, one block at a time. This is the attention function that transformers calls.

    Args:
        module: The attention layer.
        query: (1, heads, tokens, size).
        key: (1, heads / groups, tokens, size).
        value: Like key.
        attention_mask: Unused; each block has its own mask.
        scaling: Factor of the scores.
        dropout: Unused; there is no dropout.
        blocks: Blocks of the tree.
        record: Called with the number of each block and its weights, float32 (heads, queries, keys): M of eq. 4
            of AttenHScore's paper (`pipeline.uncertainty.scores`).
        options: Further options that a model passes to its attention.

    Returns:
        (1, tokens, heads, size), and no weights.

    Raises:
        ModelError: The model needs an option that this attention does not support.
    """
    import torch

    unsupported = [name for name in ("softcap", "s_aux", "sliding_window") if options.get(name) is not None]
    if unsupported:
        raise ModelError(errors.UNSUPPORTED_ATTENTION, module=type(module).__name__, parts=", ".join(unsupported))
    _, heads, _, width = query.shape
    groups = key.shape[1]
    outputs = []
    for number, block in enumerate(blocks):
        rows = block.stop - block.start
        queries = query[0, :, block.start : block.stop].reshape(groups, heads // groups * rows, width)
        keys, values = (states[0].index_select(1, block.keys) for states in (key, value))
        scores = torch.matmul(queries, keys.transpose(1, 2)).float().view(heads, rows, -1)
        weights = torch.softmax(torch.add(block.mask, scores, alpha=scaling), dim=-1)
        if record is not None:
            record(number, weights)
        weights = weights.to(query.dtype).view(groups, heads // groups * rows, -1)
        outputs.append(torch.matmul(weights, values).view(heads, rows, width))
    return torch.cat(outputs, dim=1).transpose(0, 1)[None], None


def register_attention() -> None:
    """Register the attention with transformers as ATTENTION_NAME."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION_NAME, tree_attention)
