"""Cut a sentence that says several things: at semicolons, bullets and line ends, and where it is very long.

A verifier that is asked about two claims at once tends to answer for the better one, so a joined sentence would hide the other.
An ordinary sentence stays whole.
"""

import re
from collections.abc import Iterator

from ragassay.pipeline.text.sentence_ends import Span

LONGEST = 320
"""Characters of the longest clause: of the sentences that the bundled verifier was trained on, one in a thousand is longer."""

SHORTEST_WORDS = 3
"""Fewer words make no claim of their own and stay with the clause before them."""

_BREAK = r"[;؛](?=\s|[A-Z])|；(?=.)|\s+(?=[•▪◦‣●·]\s)"  # semicolons, of Arabic and full width too; bullets within a line
_END = re.compile(_BREAK)
_END_OR_LINE = re.compile(rf"{_BREAK}|\n")
_CONTINUED = re.compile(r"\n\s*[a-z]")
_PAUSE = re.compile(r"[,:)] |\s[–—-]\s")
_SPACE = re.compile(r"\s")
_WORD = re.compile(r"\w+")


def clauses(text: str, span: Span) -> list[Span]:
    """Return the clauses of a sentence.

    Args:
        text: The whole text.
        span: The sentence, as character offsets [start, end).

    Returns:
        Their offsets, in order, without white space around them; they hold every character of the sentence but for that.
    """
    return list(_short_enough(text, _joined(text, _pieces(text, span))))


def _pieces(text: str, span: Span) -> Iterator[Span]:
    """Cut at every end of a clause. Lines are one clause where one of them continues the line above with a small letter."""
    start, end = span
    ends = _END if _CONTINUED.search(text, start, end) else _END_OR_LINE
    for found in ends.finditer(text, start, end):
        yield start, found.end()
        start = found.end()
    yield start, end


def _joined(text: str, pieces: Iterator[Span]) -> list[Span]:
    """Pieces with too few words stay with the one before them; those at the beginning go to the first that has enough."""
    found: list[Span] = []
    for start, end in pieces:
        if found and not (_says_enough(text, (start, end)) and _says_enough(text, found[-1])):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _says_enough(text: str, span: Span) -> bool:
    return len(_WORD.findall(text, *span)) >= SHORTEST_WORDS


def _short_enough(text: str, pieces: list[Span]) -> Iterator[Span]:
    """Cut what is longer than LONGEST: at the last pause in its second half, else between words."""
    for first, end in pieces:
        start = first
        while end - start > LONGEST:
            middle, limit = start + LONGEST // 2, start + LONGEST
            pauses = [found.end() for found in _PAUSE.finditer(text, middle, limit)]
            space = _SPACE.search(text, limit, end)
            cut = pauses[-1] if pauses else text.rfind(" ", middle, limit) + 1 or (space.end() if space else end)
            if not _says_enough(text, (cut, end)):
                break
            yield from _stripped(text, start, cut)
            start = cut
        yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
