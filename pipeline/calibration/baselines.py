"""The two trivial baselines that every figure is reported beside: response length, and words that the context lacks."""

import re
from collections.abc import Iterable, Sequence, Set

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Words of a text, in lower case."""
    return _WORD.findall(text.lower())


def share_in_context(text: str, context_words: set[str]) -> float:
    """Share of a text's words that its context has, 0 to 1, higher = better supported; 1 for a text without a word."""
    found = words(text)
    return sum(word in context_words for word in found) / len(found) if found else 1.0


def words_of(passages: Iterable[str | None]) -> set[str]:
    """The different words of all passages."""
    return {word for passage in passages if passage for word in words(passage)}


def nearest(text: str, passages: Sequence[Set[str]]) -> int | None:
    """Number of the passage that has most of a text's different words; None where none has any.

    Args:
        text: Any text.
        passages: The words of each.
    """
    mine = set(words(text))
    shared = [len(mine & passage) for passage in passages]
    return shared.index(max(shared)) if any(shared) else None
