"""Locate quotes of the reasoner in the context."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_EQUIVALENTS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "})
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s+")
MIN_QUOTE_LENGTH = 3
"""Shorter quotes would match anywhere."""


class Evidence(NamedTuple):
    """A quoted piece of a passage.

    Attributes:
        passage: Index of the passage, from 0.
        start: Character offset in the passage.
        end: Character offset of the end, exclusive.
        text: The piece, exactly as in the passage.
    """

    passage: int
    start: int
    end: int
    text: str


def find_quote(quote: str, passages: Sequence[str | None]) -> Evidence | None:
    """Find a quote in a context, ignoring case, spacing, and the kinds of quotation marks and dashes.

    Args:
        quote: Text that the reasoner quotes.
        passages: The context.

    Returns:
        The first occurrence of whole words; None if there is none, or the quote is too short.
    """
    normalized = _SPACE.sub(" ", _normalize(quote)).strip(" \"'.…")
    if len(normalized) < MIN_QUOTE_LENGTH or not _WORD.search(normalized):
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, normalized.split(" "))))
    for number, passage in enumerate(passages):
        if passage is None:
            continue
        for match in pattern.finditer(_normalize(passage)):
            start, end = match.span()
            if not _is_inside_word(passage, start) and not _is_inside_word(passage, end):
                return Evidence(number, start, end, passage[start:end])
    return None


def _normalize(text: str) -> str:
    """Return a text of the same length in lower case, with plain quotation marks, dashes and spaces."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text.translate(_EQUIVALENTS))


def _is_inside_word(text: str, offset: int) -> bool:
    return 0 < offset < len(text) and bool(_WORD.match(text[offset - 1]) and _WORD.match(text[offset]))
