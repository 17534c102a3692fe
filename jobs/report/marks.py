"""Texts cut into pieces, each with what it is marked as: what a context lacks, where to look in it, what is quoted of it."""

import itertools
import re
from collections.abc import Iterable, Sequence, Set

import numpy as np

from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.report.explained import Explanation
from ragassay.pipeline.detectors.terms import content_words

LONGEST = 20_000
MISSING, NEW, BEST, QUOTE = "missing", "new", "best", "quote"
"""What a detector finds missing from the context; a word that neither context nor question has; the piece of a passage nearest
to a flagged sentence; what an explanation quotes."""

Piece = tuple[str, str]
"""A text, and what it is marked as; empty where it is not."""

Span = tuple[int, int, str]
"""Start, end, and what it is marked as."""


def cut(text: str, spans: Iterable[Span]) -> list[Piece]:
    """A text in pieces, nothing left out; where spans overlap the later one is seen. An empty text has no piece."""
    if not text:
        return []
    kinds = [""]
    paint = np.zeros(len(text), dtype=np.int8)
    for start, end, kind in spans:
        if kind not in kinds:
            kinds.append(kind)
        paint[max(start, 0) : max(end, 0)] = kinds.index(kind)
    ends = [0, *(np.flatnonzero(np.diff(paint)) + 1).tolist(), len(text)]
    return [(text[a:b], kinds[paint[a]]) for a, b in itertools.pairwise(ends)]


def sentence_pieces(text: str, missing: Iterable[str], known: Set[str] | None, language: str) -> list[Piece]:
    """A sentence with what its context lacks; cut where it is too long to show.

    Args:
        text: The sentence.
        missing: What it names and the context does not, by a detector, as it stands in the sentence.
        known: Stems of the words of context and question; None marks no words.
        language: ISO 639-1 code, for stop words and stems.
    """
    shown = text[:LONGEST]
    spans: list[Span] = []
    if known is not None:
        spans += [(start, end, NEW) for start, end, stem in content_words(shown, language) if stem not in known]
    for named in dict.fromkeys(missing):
        if words := named.split():
            # A number is not found within a longer one, and a name's words may stand on two lines.
            pattern = r"(?<!\w)(?<!\d[.,])" + r"\s+".join(map(re.escape, words)) + r"(?!\w)(?![.,]\d)"
            spans += [(*match.span(), MISSING) for match in re.finditer(pattern, shown)]
    return [*cut(shown, spans), *([(left_out(len(text) - LONGEST), "")] if len(text) > LONGEST else [])]


def marked(
    passages: Sequence[str], explanations: Iterable[Explanation], best: Iterable[tuple[int, int, int]] = ()
) -> list[list[Piece]]:
    """Every passage cut into pieces.

    Args:
        passages: The context.
        explanations: What they quote is marked where it stands.
        best: (passage, start, end) of pieces to look at.
    """
    spans: dict[int, list[Span]] = {}
    for passage, start, end in best:
        spans.setdefault(passage, []).append((start, end, BEST))
    for e in explanations:
        # A quote that does not stand there is shown with its explanation, but nothing is marked.
        if e.quote and 0 <= e.passage < len(passages) and passages[e.passage][e.start : e.end] == e.quote:
            spans.setdefault(e.passage, []).append((e.start, e.end, QUOTE))
    return [cut(passage, spans.get(i, [])) for i, passage in enumerate(passages)]


def shortened(text: str) -> str:
    """`visible`, and cut after LONGEST characters with a word on how many are missing."""
    if len(text) <= LONGEST:
        return make_visible(text)
    return f"{make_visible(text[:LONGEST])} {left_out(len(text) - LONGEST)}"


def left_out(characters: int) -> str:
    """The word on how many are missing."""
    return f"[… {characters:,} more characters]"
