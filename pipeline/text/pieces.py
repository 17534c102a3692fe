"""Cut passages into pieces, about as long as a sentence: what evidence points to."""

import re
from collections.abc import Iterator
from itertools import pairwise

from ragassay.pipeline.text.sentence_ends import Span, correct_sentence_ends

MAX_PIECE_CHARS = 600
_LINE = re.compile(r"[^\n]+")
# Not after "a.m.", "U.S.", "J." and "Dr.", as in spaCy's rules; `correct_sentence_ends` finds the ends that they hide.
_PIECE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))(?<!\.\w\.)(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St)\.)(?<!\b(?:Mrs|etc|Inc|Ltd)\.)\s+"
)


def split_passage(passage: str) -> Iterator[Span]:
    """Split a passage into approximate sentences [start, end) by the rules for responses, and cut long ones at white space."""
    for line in _LINE.finditer(passage):
        ends = [match.end() for match in _PIECE_END.finditer(passage, *line.span())]
        spans = [span for span in pairwise([line.start(), *ends, line.end()]) if span[0] < span[1]]
        for span in correct_sentence_ends(passage, spans, (), "en"):
            yield from _cut_piece(passage, *span)


def _cut_piece(passage: str, start: int, end: int) -> Iterator[Span]:
    piece = passage[start:end]
    start, end = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    while end - start > MAX_PIECE_CHARS:
        cut = passage.rfind(" ", start + 1, start + MAX_PIECE_CHARS)
        cut = cut if cut > start else start + MAX_PIECE_CHARS
        yield start, cut
        start = cut
    if start < end:
        yield start, end
