"""Whether what a model quotes is really in the context, and where."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_LIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "})
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s+")
MIN_QUOTE_LENGTH = 3
"""Characters that a quote has at least: less would be found anywhere."""


class Evidence(NamedTuple):
    """A piece of a passage.

    Attributes:
        passage: Its number, from 0.
        start: Where the piece begins in the passage, in characters.
        end: Where it ends.
        text: The piece as the passage has it.
    """

    passage: int
    start: int
    end: int
    text: str


def find_quote(quote: str, passages: Sequence[str | None]) -> Evidence | None:
    """Where a quote stands in a context, but for case, spacing, and the kinds of quotation marks and dashes.

    Args:
        quote: What the model says a passage says.
        passages: The context.

    Returns:
        The first place at the borders of words; None where there is none, or the quote is too short to mean anything.
    """
    wanted = _SPACE.sub(" ", _alike(quote)).strip(" \"'.…")
    if len(wanted) < MIN_QUOTE_LENGTH or not _WORD.search(wanted):
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, wanted.split(" "))))
    for number, passage in enumerate(passages):
        if passage is None:
            continue
        for match in pattern.finditer(_alike(passage)):
            start, end = match.span()
            if not _inside_word(passage, start) and not _inside_word(passage, end):
                return Evidence(number, start, end, passage[start:end])
    return None


def _alike(text: str) -> str:
    """A text of the same length, in which what doesn't matter is alike."""
    return "".join(low if len(low := char.lower()) == 1 else char for char in text.translate(_LIKE))


def _inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and bool(_WORD.match(text[place - 1]) and _WORD.match(text[place]))
