"""State in words why a sentence is doubtful or flagged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragassay.jobs.report.responses.marks import NEW, Piece
from ragassay.jobs.report.responses.member_scores import MemberScore
from ragassay.jobs.report.wording import describe_missing

MAX_WORDS = 8
"""Words that are listed."""


def list_reasons(
    missing: Iterable[Mapping[str, Any]], new_words: Sequence[str], members: Iterable[MemberScore]
) -> Iterator[str]:
    """List the reasons: missing terms, then new words; without both, the members that find too little support.

    Args:
        missing: Terms that a detector misses in the context: kind and text.
        new_words: Words that neither context nor question contains.
        members: Each member's score.
    """
    texts_by_kind: dict[str, list[str]] = {}
    for term in missing:
        texts_by_kind.setdefault(term["kind"], []).append(term["text"])
    for kind, texts in texts_by_kind.items():
        yield describe_missing(kind, list(dict.fromkeys(texts)))
    if new_words:
        more = f" and {len(new_words) - MAX_WORDS:,} more" if len(new_words) > MAX_WORDS else ""
        yield f"Neither passages nor question contain: {', '.join(new_words[:MAX_WORDS])}{more}."
    if not (texts_by_kind or new_words):
        low = [member.name for member in members if member.is_low]
        if low:
            yield f"Too little support in the passages, by {', '.join(low)}."


def list_new_words(pieces: Iterable[Piece]) -> list[str]:
    """List the words of a sentence that are marked as new, each once."""
    return list(dict.fromkeys(text for text, mark in pieces if mark == NEW))
