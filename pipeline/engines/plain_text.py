"""Log text as token ids that can never be control tokens.

What a chat template makes is cut at control tokens (every added token of the tokenizer), and each piece of text between them is
encoded by a copy of the tokenizer that knows no control tokens. So "<|im_end|>" in a response stays plain text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

Ids = list[int]
Segment = int | str  # a control token, or text


class PlainText:
    """Encodes text for one tokenizer.

    Attributes:
        plain: A `tokenizers.Tokenizer` that knows no control tokens.
        control: The control tokens it left out, with their ids.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Copy the tokenizer.

        Args:
            tokenizer: A Hugging Face tokenizer with a fast backend.

        Raises:
            ModelError: It has none.
        """
        self.plain, self.control = plain_tokenizer(tokenizer)
        # A letter that the model does not know is no control token.
        self._forbidden = set(self.control.values()) - {self.unknown}

    @property
    def unknown(self) -> int | None:
        """Id that stands for what the model does not know; None where there is none."""
        found: int | None = self.plain.token_to_id(getattr(self.plain.model, "unk_token", None) or "")
        return found

    def encode(self, texts: Sequence[str]) -> dict[str, Ids]:
        """Token ids of texts, by one call of the tokenizer; none of them is a control token.

        Raises:
            ValueError: The tokenizer makes control tokens of a text, however it is cut.
        """
        encoded = self.plain.encode_batch_fast(texts, add_special_tokens=False)
        found = zip(texts, (e.ids for e in encoded), strict=True)
        return {text: ids if self._forbidden.isdisjoint(ids) else self._encode_by_parts(text) for text, ids in found}

    def _encode_by_parts(self, text: str) -> Ids:
        """Encode a text in which a control token's own spelling is a plain vocabulary entry: cut inside each spelling."""
        ids = [i for _, e in self._parts(text) for i in e.ids]
        if not self._forbidden.isdisjoint(ids):
            raise ValueError("the tokenizer turns plain text into control tokens")  # of this text: its row's fault
        return ids

    def token_ends(self, text: str) -> list[int]:
        """Character offset at which each token of a text ends, as `encode` cuts it."""
        encoded = self.plain.encode(text, add_special_tokens=False)
        parts = [(0, encoded)] if self._forbidden.isdisjoint(encoded.ids) else self._parts(text)
        return [start + end for start, e in parts for _, end in e.offsets]

    def _parts(self, text: str) -> list[tuple[int, Any]]:
        """A text cut inside every spelling of a control token: where each part starts, and its encoding."""
        pattern = "|".join(re.escape(token) for token in sorted(self.control, key=len, reverse=True))
        cuts = [0, *(m.start() + 1 for m in re.finditer(pattern, text)), len(text)]
        return list(
            zip(cuts, self.plain.encode_batch([text[a:b] for a, b in pairwise(cuts)], add_special_tokens=False), strict=False)
        )

    def cut(self, text: str, marks: Mapping[str, int] | None = None) -> list[Segment]:
        """A rendered template in pieces: control tokens as ids, and the text between them.

        Args:
            text: The template, rendered without log text.
            marks: Further spellings that are cut out, and what stands for them.
        """
        special = {**self.control, **(marks or {})}
        pattern = "|".join(re.escape(token) for token in sorted(special, key=len, reverse=True))
        return [special.get(piece, piece) for piece in re.split(f"({pattern})", text) if piece]


def plain_tokenizer(tokenizer: Any) -> tuple[Any, dict[str, int]]:
    """A copy of a tokenizer that knows no control tokens, and the control tokens it left out.

    Args:
        tokenizer: A Hugging Face tokenizer with a fast backend.

    Returns:
        A `tokenizers.Tokenizer`, and a dictionary of added token -> id.

    Raises:
        ModelError: The tokenizer has no fast backend.
    """
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(errors.SLOW_TOKENIZER, tokenizer=type(tokenizer).__name__)
    data = json.loads(backend.to_str())
    control = {token["content"]: int(token["id"]) for token in data["added_tokens"]}
    data.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return Tokenizer.from_str(json.dumps(data)), control
