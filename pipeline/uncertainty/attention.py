"""Record how much attention the tokens of texts get from later tokens, one layer at a time, so that memory is linear."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.token_tree.attention import AttentionBlock

TokenIndices = slice | Any
"""Indices of a text's tokens among the queries or keys of a block: a slice if they are consecutive, else a tensor."""


class AttentionRecorder:
    """Attention that the tokens of texts get, over all recorded blocks and layers.

    M is the attention matrix of eq. 4 of AttenHScore's paper.

    Attributes:
        maxima: A float32 tensor per text: max over j > i, layers and heads of M_ji (the maximum of its eq. 5).
        last: A float32 tensor per text: max over layers and heads of M_ni, for its last token n.
        layers: Number of recorded layers.
    """

    def __init__(self, blocks: Sequence[AttentionBlock], texts: Sequence[Ints], device: Any) -> None:
        """Start without recorded layers.

        Args:
            blocks: Blocks of the tree.
            texts: Indices in the tree of each text's tokens, in order.
            device: Device of the model.
        """
        import torch

        self._lengths = [len(text) for text in texts]
        self._block_texts = [_locate_texts(block, texts, device) for block in blocks]
        self.maxima, self._sums, self.last = ([torch.zeros(n, device=device) for n in self._lengths] for _ in range(3))
        self._heads = self.layers = 0

    def record(self, number: int, weights: Any) -> None:
        """Record a block of a layer.

        Args:
            number: Number of the block.
            weights: M = softmax(mask(Q R' / sqrt(d_k))), of the block: (heads, queries, keys).
        """
        if number == 0:
            self._heads += weights.shape[0]
            self.layers += 1
        for i, queries, keys, is_earlier in self._block_texts[number]:
            attention = weights[:, queries][:, :, keys] * is_earlier
            size = is_earlier.shape[1]
            maxima, sums, last = (tensors[i][:size] for tensors in (self.maxima, self._sums, self.last))
            maxima.copy_(maxima.maximum(attention.amax((0, 1))))
            sums += attention.sum((0, 1))
            if size == self._lengths[i]:
                last.copy_(last.maximum(attention[:, -1].amax(0)))

    @property
    def means(self) -> list[Any]:
        """A float32 tensor per text: mean over j > i, layers and heads of M_ji; 0 for its last token."""
        import torch

        counts = (torch.arange(n - 1, -1, -1, device=sums.device) for n, sums in zip(self._lengths, self._sums, strict=True))
        return [sums / (count.clamp(min=1) * max(1, self._heads)) for sums, count in zip(self._sums, counts, strict=True)]


def _locate_texts(
    block: AttentionBlock, texts: Sequence[Ints], device: Any
) -> list[tuple[int, TokenIndices, TokenIndices, Any]]:
    """Locate the texts with queries in a block.

    Returns:
        For each text its number, its indices among the queries and among the keys, and whether each key precedes each query,
        (queries, keys).
    """
    import torch

    block_keys = block.keys.cpu().numpy()
    located = []
    for i, text in enumerate(texts):
        first, end = np.searchsorted(text, [block.start, block.stop])
        if first == end:
            continue
        is_earlier = np.arange(end) < np.arange(first, end)[:, None]
        queries = _to_indices(text[first:end] - block.start, device)
        keys = _to_indices(np.searchsorted(block_keys, text[:end]), device)
        located.append((i, queries, keys, torch.from_numpy(is_earlier).to(device)))
    return located


def _to_indices(indices: Ints, device: Any) -> TokenIndices:
    import torch

    if indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return torch.from_numpy(indices).to(device)
