"""Find sentences that add no claim: word for word a piece of the context, or an earlier sentence of the same response.

They are supported, or judged where they stand first. If they counted, a copy of the context behind an invented answer would
raise the answer's mean.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragassay.pipeline.text.visible import as_read

FEWEST_WORDS = 3
"""Shorter sentences, such as "Yes.", stand in many contexts by chance."""

_WORD = re.compile(r"\w+")
_PIECE_END = re.compile(r"(?<=[.!?:;])[\"'”’)\]]*\s+|\n+")


def repeated(context: Sequence[str], sentences: Sequence[str]) -> list[bool]:
    """Return whether each sentence of a response repeats the context or an earlier sentence.

    A part of a sentence of the context is no repetition: "the drug cures it" within "nobody claims that the drug cures it".

    Args:
        context: Passages.
        sentences: Sentences of the response, in order.

    Returns:
        One a sentence; all false where every sentence repeats something, so that a response of copies is judged as any other.
    """
    texts = [_words(sentence) for sentence in sentences]
    passages: list[_Passage] | None = None
    earlier: set[str] = set()
    found = []
    for text in texts:
        if text.count(" ") <= FEWEST_WORDS:  # one space before each word, and one behind the last
            found.append(False)
            continue
        if passages is None:
            passages = [_passage(passage) for passage in context]
        found.append(text in earlier or any(passage.has(text) for passage in passages))
        earlier.add(text)
    return [False] * len(found) if all(found) else found


@dataclass(frozen=True)
class _Passage:
    """A passage's words, and the offsets at which its sentences and lines begin and end."""

    words: str
    edges: frozenset[int]

    def has(self, text: str) -> bool:
        """Whether a text is one of its sentences, or several in a row."""
        at = self.words.find(text)
        while at >= 0:
            if at in self.edges and at + len(text) - 1 in self.edges:
                return True
            at = self.words.find(text, at + 1)
        return False


def _passage(text: str) -> _Passage:
    parts, edges, size = [" "], {0}, 0
    for piece in _PIECE_END.split(text):
        found = _words(piece)[1:]
        parts.append(found)
        size += len(found)
        edges.add(size)
    return _Passage("".join(parts), frozenset(edges))


def _words(text: str) -> str:
    """A text's words in small letters, with a space before the first, between them, and behind the last."""
    return "".join([" ", *(f"{word} " for word in _WORD.findall(as_read(text).casefold()))])
