"""Cut passages into pieces, about as long as a sentence: what evidence points to."""

import re
from collections.abc import Iterator

MAX_PIECE_CHARS = 600
_PIECE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]]))\s+|\n+")


def split_passage(passage: str) -> Iterator[tuple[int, int]]:
    """Split a passage into approximate sentences [start, end), and cut long ones at white space."""
    start = 0
    for end, following in [*((m.start(), m.end()) for m in _PIECE_END.finditer(passage)), (len(passage), len(passage))]:
        while end - start > MAX_PIECE_CHARS:
            cut = passage.rfind(" ", start + 1, start + MAX_PIECE_CHARS)
            cut = cut if cut > start else start + MAX_PIECE_CHARS
            yield start, cut
            start = cut
        if passage[start:end].strip():
            yield start, end
        start = following
