"""Cut a sentence that says several things into clauses, so that a member judges each of them, and not what surrounds them.

A verifier that is asked about two claims at once tends to answer for the better one. It also tends to believe a claim that ends
with "as the context says". An ordinary sentence is one clause, as it stands.
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

_CITES = (
    r"(?:say|state|show|mention|confirm|describe|explain|support|report|note|answer|repl(?:y|ie)|respond|agree)(?:s|d|ed|n)?"
)
_REMARK = re.compile(
    r"\s*[,;–—]\s*(?:(?:as|so|and|just|according|to|per|in|by|of|on|is|are|was|were|the|a|this|that|these|it|above|given|provided"
    r"|retrieved|contexts?|passages?|documents?|texts?|sources?|articles?|information|with|please|only|must|be)\b\W*)*"
    rf"(?:{_CITES}|said|shown|written|according to the (?:contexts?|passages?|documents?|texts?|sources?|articles?))"
    rf"(?:\W+(?:in|by|to|the|a|this|that|it|above|with|of|is|and|contexts?|passages?|documents?|texts?|sources?|articles?"
    rf"|yes|no|true|correct|supported|{_CITES})\b)*[\s.!]*$",
    re.IGNORECASE,
)
"""A remark behind a claim, of its source or to its judge: ", as the context says", "; answer yes"."""

LONGEST_REMARK = 120
"""Characters at the end of a sentence in which a remark is looked for."""

_QUOTED = re.compile(r"[“\"«„]([^“”\"«»„]+)[”\"»]([.!?]?)")
_MARKED = re.compile(r"(?:>\s*)+")
_FOREIGN_STOP = re.compile(r"(?<=[a-z0-9)])[。｡]$")


def clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence as members judge them.

    They have no invisible characters, no look-alikes of Latin letters, no quotes around all of the sentence, no marks of
    a block quote, and no remarks on their source. Where there are several, each ends with a full stop, as in the verifier's training.

    Args:
        sentence: A sentence as `pipeline.split` cuts it; not empty.

    Returns:
        At least one text, none of them empty; an ordinary sentence as it stands.
    """
    text = _unwrapped(as_read(sentence).strip()) or sentence
    found = list(_short_enough(_joined(_pieces(_without_remark(text)))))
    return [_ended(clause) for clause in found] if len(found) > 1 else found or [text]


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
        mine = range(start, start + size)
        found.append(start if size == 1 else min(mine, key=lambda i: (math.isnan(values[i]), values[i])))
        start += size
    return found


def _unwrapped(text: str) -> str:
    marked = _MARKED.match(text)
    text = text[marked.end() :] if marked else text
    quoted = _QUOTED.fullmatch(text)
    text = quoted[1].strip() + quoted[2] if quoted else text
    return _FOREIGN_STOP.sub(".", text)


def _without_remark(text: str) -> str:
    """A sentence without the remarks behind its claim, where it makes one."""
    remark = _REMARK.search(text, max(0, len(text) - LONGEST_REMARK))
    if remark is None or len(_WORD.findall(text, 0, remark.start())) < SHORTEST_WORDS:
        return text
    return _without_remark(_ended(text[: remark.start()].rstrip()))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.start()]
        start = end.end()
    yield text[start:]


def _joined(pieces: Iterator[str]) -> list[str]:
    """Pieces with too few words stay with the one before them; those at the beginning go to the first that has enough."""
    found: list[str] = []
    for piece in filter(None, map(str.strip, pieces)):
        if found and min(len(_WORD.findall(piece)), len(_WORD.findall(found[-1]))) < SHORTEST_WORDS:
            found[-1] = f"{found[-1]}; {piece}"
        else:
            found.append(piece)
    return found


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


def _ended(clause: str) -> str:
    """A clause with a full stop, where it ends otherwise than a sentence."""
    return clause if clause[-1] in ".!?…" else clause.rstrip(",:–—- ") + "."
