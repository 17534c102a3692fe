"""How much attention the tokens of texts get from those after them: gathered a layer at a time, so that memory is linear."""

from collections.abc import Sequence
from typing import Any

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.token_tree.attention import Block, tree_attention

NAME = "watched_token_tree"
BLOCK = 128
"""Tokens whose attention is looked at together."""


class Watch:
    """What the tokens of some texts get of all layers that have been looked at.

    Attributes:
        highest: A float32 tensor a text: max over j > i, layers and heads of M_ji.
        last: The same of the last token's M_ni.
    """

    def __init__(self, paths: Sequence[Ints], lengths: Sequence[int], device: Any) -> None:
        """Begin.

        Args:
            paths: Places in the tree of each prompt's tokens, in order, at least one before its text.
            lengths: How many of them, at the end, are the text.
            device: Where the model is.
        """
        import torch

        self._paths = [torch.from_numpy(path).to(device) for path in paths]
        self._lengths = lengths
        self.highest, self._sums, self.last = ([torch.zeros(n, device=device) for n in lengths] for _ in range(3))
        self._heads = 0

    def look(self, query: Any, key: Any, scaling: float) -> None:
        """Look at a layer.

        Args:
            query: (heads, tokens, size) of the tree.
            key: (heads / groups, tokens, size).
            scaling: Factor of the scores.
        """
        self._heads += query.shape[0]
        for i, (path, length) in enumerate(zip(self._paths, self._lengths, strict=True)):
            keys = key.index_select(1, path)
            for start in range(1, length, BLOCK):
                stop = min(start + BLOCK, length)
                asking = path[len(path) - length + start : len(path) - length + stop]
                paid = _attention(query.index_select(1, asking), keys, scaling, length, start)
                self.highest[i] = self.highest[i].maximum(paid.amax((0, 1)))
                self._sums[i] += paid.sum((0, 1))
                if stop == length:
                    self.last[i] = self.last[i].maximum(paid[:, -1].amax(0))

    @property
    def means(self) -> list[Any]:
        """A float32 tensor a text: mean over j > i, layers and heads of M_ji; 0 for its last token."""
        import torch

        counts = (torch.arange(n - 1, -1, -1, device=sums.device) for n, sums in zip(self._lengths, self._sums, strict=True))
        return [sums / (count.clamp(min=1) * max(1, self._heads)) for sums, count in zip(self._sums, counts, strict=True)]


def _attention(query: Any, keys: Any, scaling: float, length: int, start: int) -> Any:
    """M = softmax(mask(q k' scaling)), eq. 4, (heads, rows, length): what tokens of a text from `start` on pay to the text's
    tokens before them; 0 to themselves."""
    import torch

    heads, rows, width = query.shape
    groups, size, _ = keys.shape
    scores = torch.matmul(query.reshape(groups, heads // groups * rows, width), keys.transpose(1, 2)).float() * scaling
    places = torch.arange(size - length + start, size - length + start + rows, device=query.device)[:, None]
    seen = torch.arange(size, device=query.device) - places  # below 0: earlier, 0: itself
    paid = torch.softmax(scores.view(heads, rows, size).masked_fill(seen > 0, float("-inf")), dim=-1)
    return paid.masked_fill(seen >= 0, 0.0)[:, :, size - length :]


def watched_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float,
    dropout: float = 0.0,
    *,
    blocks: list[Block],
    watch: Watch,
    **options: Any,
) -> tuple[Any, None]:
    """`tree_attention`, looked at by a `Watch`; the attention function that transformers calls."""
    watch.look(query[0], key[0], scaling)
    return tree_attention(module, query, key, value, attention_mask, scaling, dropout, blocks=blocks, **options)


def register() -> None:
    """Make the attention known to transformers, under NAME."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, watched_attention)
