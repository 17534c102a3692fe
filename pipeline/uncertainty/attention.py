"""How much attention the tokens of texts get from those after them: gathered a layer at a time, so that memory is linear."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.token_tree.attention import Block

Places = slice | Any
"""Of a text's tokens among a block's queries or keys: a slice, or a tensor where they don't stand side by side."""


class Watch:
    """What the tokens of some texts get of all blocks and layers that were shown.

    Attributes:
        highest: A float32 tensor a text: max over j > i, layers and heads of M_ji.
        last: The same of the last token's M_ni.
        layers: How many were shown.
    """

    def __init__(self, blocks: Sequence[Block], texts: Sequence[Ints], device: Any) -> None:
        """Begin.

        Args:
            blocks: Of the tree.
            texts: Places in the tree of each text's tokens, in order.
            device: Where the model is.
        """
        import torch

        self._lengths = [len(text) for text in texts]
        self._texts = [_of_block(block, texts, device) for block in blocks]
        self.highest, self._sums, self.last = ([torch.zeros(n, device=device) for n in self._lengths] for _ in range(3))
        self._heads = self.layers = 0

    def look(self, number: int, weights: Any) -> None:
        """Look at a block of a layer.

        Args:
            number: Of the block.
            weights: M = softmax(mask(q k' scaling)), eq. 4: (heads, queries, keys).
        """
        if number == 0:
            self._heads += weights.shape[0]
            self.layers += 1
        for i, queries, keys, earlier in self._texts[number]:
            paid = weights[:, queries][:, :, keys] * earlier
            size = earlier.shape[1]
            highest, sums, last = (found[i][:size] for found in (self.highest, self._sums, self.last))
            highest.copy_(highest.maximum(paid.amax((0, 1))))
            sums += paid.sum((0, 1))
            if size == self._lengths[i]:
                last.copy_(last.maximum(paid[:, -1].amax(0)))

    @property
    def means(self) -> list[Any]:
        """A float32 tensor a text: mean over j > i, layers and heads of M_ji; 0 for its last token."""
        import torch

        counts = (torch.arange(n - 1, -1, -1, device=sums.device) for n, sums in zip(self._lengths, self._sums, strict=True))
        return [sums / (count.clamp(min=1) * max(1, self._heads)) for sums, count in zip(self._sums, counts, strict=True)]


def _of_block(block: Block, texts: Sequence[Ints], device: Any) -> list[tuple[int, Places, Places, Any]]:
    """Of each text with queries in a block: its number, its places among queries and keys, and a mask (queries, keys) of 1
    where the key stands before the query."""
    import torch

    keys = block.keys.cpu().numpy()
    found = []
    for i, text in enumerate(texts):
        first, end = np.searchsorted(text, [block.start, block.stop])
        if first == end:
            continue
        earlier = np.arange(end) < np.arange(first, end)[:, None]
        queries = _places(text[first:end] - block.start, device)
        seen = _places(np.searchsorted(keys, text[:end]), device)
        found.append((i, queries, seen, torch.from_numpy(earlier).to(device)))
    return found


def _places(places: Ints, device: Any) -> Places:
    import torch

    if places[-1] - places[0] == len(places) - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return torch.from_numpy(places).to(device)
