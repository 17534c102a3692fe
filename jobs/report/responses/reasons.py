"""State in words why a sentence is doubtful or flagged, and what the context lacks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragassay.jobs.report.responses.marks import NEW, Piece
from ragassay.jobs.report.wording import describe_missing

MAX_WORDS = 8
"""Words that are listed."""


def list_reasons(cause: str | None, missing: Iterable[Mapping[str, Any]], new_words: Sequence[str]) -> Iterator[str]:
    """List the reasons: the member that decided, then missing terms and new words, which need not be the cause.

    Args:
        cause: Description of the member that lowers the score most; None if no member does.
        missing: Terms that a detector misses in the context: kind and text.
        new_words: Words that neither context nor question contains.
    """
    if cause:
        yield f"Mainly by {cause}."
    texts_by_kind: dict[str, list[str]] = {}
    for term in missing:
        texts_by_kind.setdefault(term["kind"], []).append(term["text"])
    for kind, texts in texts_by_kind.items():
        yield describe_missing(kind, list(dict.fromkeys(texts)))
    if new_words:
        more = f" and {len(new_words) - MAX_WORDS:,} more" if len(new_words) > MAX_WORDS else ""
        yield f"Words that are not in the context: {', '.join(new_words[:MAX_WORDS])}{more}."


def list_new_words(pieces: Iterable[Piece]) -> list[str]:
    """List the words of a sentence that are marked as new, each once."""
    return list(dict.fromkeys(text for text, mark in pieces if mark == NEW))
