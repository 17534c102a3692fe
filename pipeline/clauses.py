"""Cut a sentence that says several things into clauses, so that a member judges each of them.

A verifier that is asked about two claims at once tends to answer for the better one. An ordinary sentence is one clause.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from ragassay.pipeline.visible import as_read

LONGEST = 320
"""Characters of the longest clause: of the sentences that the bundled verifier was trained on, one in a thousand is longer."""

SHORTEST_WORDS = 3
"""Fewer words make no claim of their own and stay with the clause before them."""

_END = re.compile(
    r"[;؛](?=\s|[A-Z])\s*|；\s*"  # semicolons, of Arabic and full width too
    r"|\s+[•▪◦‣●·]\s+"  # bullets within a line
    r"|\s*\n\s*(?![a-z])"  # a new line that does not continue the one above
)
_PAUSE = re.compile(r"[,:)] |\s[–—-]\s")
_WORD = re.compile(r"\w+")


def clauses(sentence: str) -> list[str]:
    """Clauses of a sentence, as members judge them: without invisible characters and look-alikes of Latin letters.

    Args:
        sentence: A sentence as `pipeline.split` cuts it; not empty.

    Returns:
        At least one text, none of them empty; together they have every word of the sentence, in order.
    """
    text = as_read(sentence).strip() or sentence
    return list(_short_enough(_joined(_pieces(text)))) or [text]


def lowest(values: Sequence[float], sizes: Iterable[int]) -> list[int]:
    """The clause that decides each sentence.

    Args:
        values: A value a clause, of all sentences one after the other; NaN where there is none.
        sizes: Clauses a sentence, each > 0.

    Returns:
        Number of the clause with the lowest value, for each sentence; its first one where none has a value.
    """
    found, start = [], 0
    for size in sizes:
        found.append(start if size == 1 else min(range(start, start + size), key=lambda i: (math.isnan(values[i]), values[i])))
        start += size
    return found


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        # The semicolon stays with what it ends.
        yield text[start : end.start() + (text[end.start()] in ";؛；")]
        start = end.end()
    yield text[start:]


def _joined(pieces: Iterator[str]) -> list[str]:
    """Pieces with too few words stay with the one before them; those at the beginning go to the first that has enough."""
    found: list[str] = []
    for piece in pieces:
        if found and (len(_WORD.findall(piece)) < SHORTEST_WORDS or len(_WORD.findall(found[-1])) < SHORTEST_WORDS):
            found[-1] = f"{found[-1]} {piece}".strip()
        else:
            found.append(piece.strip())
    return [piece for piece in found if piece]


def _short_enough(pieces: list[str]) -> Iterator[str]:
    """Cut what is longer than LONGEST: at the last pause in its second half, else at white space, else anywhere."""
    for piece in pieces:
        rest = piece
        while len(rest) > LONGEST:
            pauses = [m.end() for m in _PAUSE.finditer(rest, LONGEST // 2, LONGEST)]
            cut = pauses[-1] if pauses else rest.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
            yield rest[:cut].strip()
            rest = rest[cut:].strip()
        if rest:
            yield rest
