"""Encode log text as token ids that can never be control tokens.

A rendered chat template is split at control tokens (every added token of the tokenizer), and each piece of text between them is
encoded by a copy of the tokenizer without control tokens. So "<|im_end|>" in a response stays plain text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

TokenIds = list[int]
Segment = int | str  # a control token, or text


class PlainTextEncoder:
    """Encodes text for one tokenizer.

    Attributes:
        tokenizer: A `tokenizers.Tokenizer` without control tokens.
        control_tokens: Removed control token -> id.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Copy the tokenizer.

        Args:
            tokenizer: A Hugging Face tokenizer with a fast backend.

        Raises:
            ModelError: It has no fast backend.
        """
        self.tokenizer, self.control_tokens = make_plain_tokenizer(tokenizer)
        # The token for unknown characters is not a control token.
        self._forbidden = set(self.control_tokens.values()) - {self.unknown_id}

    @property
    def unknown_id(self) -> int | None:
        """Token id for unknown text; None if the tokenizer has none."""
        token: int | None = self.tokenizer.token_to_id(getattr(self.tokenizer.model, "unk_token", None) or "")
        return token

    def encode(self, texts: Sequence[str]) -> dict[str, TokenIds]:
        """Return the token ids of texts, without control tokens, with one call of the tokenizer.

        Raises:
            ValueError: The tokenizer turns a text into control tokens, even if it is split.
        """
        encoded = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        pairs = zip(texts, (encoding.ids for encoding in encoded), strict=True)
        return {text: ids if self._forbidden.isdisjoint(ids) else self._encode_by_parts(text) for text, ids in pairs}

    def _encode_by_parts(self, text: str) -> TokenIds:
        """Encode a text in which the spelling of a control token is a plain vocabulary entry: split inside each spelling."""
        ids = [token for _, encoding in self._encode_parts(text) for token in encoding.ids]
        if not self._forbidden.isdisjoint(ids):
            raise ValueError("the tokenizer turns plain text into control tokens")  # a fault of the row
        return ids

    def token_ends(self, text: str) -> list[int]:
        """Return the character offset at which each token of a text ends, as encoded by `encode`."""
        encoded = self.tokenizer.encode(text, add_special_tokens=False)
        parts = [(0, encoded)] if self._forbidden.isdisjoint(encoded.ids) else self._encode_parts(text)
        return [start + end for start, encoding in parts for _, end in encoding.offsets]

    def _encode_parts(self, text: str) -> list[tuple[int, Any]]:
        """Split a text inside every spelling of a control token: the start of each part, and its encoding."""
        pattern = "|".join(re.escape(token) for token in sorted(self.control_tokens, key=len, reverse=True))
        cuts = [0, *(match.start() + 1 for match in re.finditer(pattern, text)), len(text)]
        return list(
            zip(
                cuts,
                self.tokenizer.encode_batch([text[start:end] for start, end in pairwise(cuts)], add_special_tokens=False),
                strict=False,
            )
        )

    def cut_at_control_tokens(self, text: str, marks: Mapping[str, int] | None = None) -> list[Segment]:
        """Split a rendered template into control tokens, as ids, and the text between them.

        Args:
            text: The template, rendered without log text.
            marks: Further spelling -> id to insert instead.
        """
        special = {**self.control_tokens, **(marks or {})}
        pattern = "|".join(re.escape(token) for token in sorted(special, key=len, reverse=True))
        return [special.get(piece, piece) for piece in re.split(f"({pattern})", text) if piece]


def make_plain_tokenizer(tokenizer: Any) -> tuple[Any, dict[str, int]]:
    """Copy a tokenizer without its control tokens.

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
