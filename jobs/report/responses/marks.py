"""Cut texts into marked pieces: terms missing from the context, the passage piece to look at, quotes."""

import itertools
import re
from collections.abc import Iterable, Sequence, Set

import numpy as np

from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.report.responses.explanations import ShownExplanation
from ragassay.pipeline.detectors.terms import find_content_words

MAX_CHARACTERS = 20_000
MISSING, NEW, BEST, QUOTE = "missing", "new", "best", "quote"
"""Marks: a term that a detector misses in the context; a word that neither context nor question contains; the piece of a
passage nearest to a flagged sentence; a quote of an explanation."""

Piece = tuple[str, str]
"""A text and its mark; an empty mark means none."""

Span = tuple[int, int, str]
"""Start, end, mark."""


def cut_text(text: str, spans: Iterable[Span]) -> list[Piece]:
    """Cut a text into pieces, without loss; of overlapping spans the later one wins. An empty text has no pieces."""
    if not text:
        return []
    marks = [""]
    mark_numbers = np.zeros(len(text), dtype=np.int8)
    for start, end, mark in spans:
        if mark not in marks:
            marks.append(mark)
        mark_numbers[max(start, 0) : max(end, 0)] = marks.index(mark)
    bounds = [0, *(np.flatnonzero(np.diff(mark_numbers)) + 1).tolist(), len(text)]
    return [(text[a:b], marks[mark_numbers[a]]) for a, b in itertools.pairwise(bounds)]


def mark_sentence(text: str, missing_terms: Iterable[str], known_stems: Set[str] | None, language: str) -> list[Piece]:
    """Mark the terms of a sentence that its context lacks; cut a sentence that is too long to show.

    Args:
        text: The sentence.
        missing_terms: Terms that a detector misses in the context, as they appear in the sentence.
        known_stems: Stems of the words of context and question; None marks no words.
        language: ISO 639-1 code, for stop words and stems.
    """
    shown = text[:MAX_CHARACTERS]
    spans: list[Span] = []
    if known_stems is not None:
        spans += [(start, end, NEW) for start, end, stem in find_content_words(shown, language) if stem not in known_stems]
    for term in dict.fromkeys(missing_terms):
        if words := term.split():
            # A number must not match within a longer one, and a name's words may be on two lines.
            pattern = r"(?<!\w)(?<!\d[.,])" + r"\s+".join(map(re.escape, words)) + r"(?!\w)(?![.,]\d)"
            spans += [(*match.span(), MISSING) for match in re.finditer(pattern, shown)]
    return [
        *cut_text(shown, spans),
        *([(describe_omitted(len(text) - MAX_CHARACTERS), "")] if len(text) > MAX_CHARACTERS else []),
    ]


def mark_passages(
    passages: Sequence[str], explanations: Iterable[ShownExplanation], best: Iterable[tuple[int, int, int]] = ()
) -> list[list[Piece]]:
    """Cut every passage into marked pieces.

    Args:
        passages: The context.
        explanations: Explanations whose quotes are marked.
        best: (passage, start, end) of pieces to look at.
    """
    spans: dict[int, list[Span]] = {}
    for passage, start, end in best:
        spans.setdefault(passage, []).append((start, end, BEST))
    for explanation in explanations:
        # A quote that is not at its stated position is shown with the explanation, but not marked.
        if (
            explanation.quote
            and 0 <= explanation.passage < len(passages)
            and passages[explanation.passage][explanation.start : explanation.end] == explanation.quote
        ):
            spans.setdefault(explanation.passage, []).append((explanation.start, explanation.end, QUOTE))
    return [cut_text(passage, spans.get(i, [])) for i, passage in enumerate(passages)]


def shorten_text(text: str) -> str:
    """Make a text visible, and cut it after MAX_CHARACTERS with a note on the rest."""
    if len(text) <= MAX_CHARACTERS:
        return make_visible(text)
    return f"{make_visible(text[:MAX_CHARACTERS])} {describe_omitted(len(text) - MAX_CHARACTERS)}"


def describe_omitted(characters: int) -> str:
    """Return the note on omitted characters."""
    return f"[… {characters:,} more characters]"
