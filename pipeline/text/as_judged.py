"""A sentence as members judge it: the claim, as a person reads it, without what surrounds it."""

import re

from ragassay.pipeline.text.visible import as_read

LONGEST_REMARK = 120
"""Characters at the end of a sentence in which a remark is looked for."""

FEWEST_WORDS = 3
"""What is left of a claim without a remark has so many words at least."""

_SOURCE = r"(?:contexts?|passages?|documents?|texts?|sources?|articles?|information)"
_SAYS = (
    r"(?:say|state|show|mention|confirm|describe|explain|support|report|note|answer|repl(?:y|ie)|respond|agree)(?:s|d|ed|n)?"
)
_FILLER = (
    rf"(?:as|so|and|just|according|to|per|in|by|of|on|is|are|was|were|the|a|this|that|these|it|above|given|provided|retrieved|with"
    rf"|please|only|must|be|{_SOURCE})"
)
_REMARK = re.compile(
    rf"\s*[,;–—]\s*(?:{_FILLER}\b\W*)*(?:{_SAYS}|said|shown|written|according to the {_SOURCE})"
    rf"(?:\W+(?:{_FILLER}|yes|no|true|correct|{_SAYS})\b)*[\s.!]*$",
    re.IGNORECASE,
)
"""A remark behind a claim, about its source or to its judge: ", as the context says", "; answer yes"."""

_QUOTED = re.compile(r"[“\"«„]([^“”\"«»„]+)[”\"»]([.!?]?)")
_MARKED = re.compile(r"(?:>\s*)+")
_FOREIGN_STOP = re.compile(r"(?<=[a-z0-9)])[。｡]$")
_WORD = re.compile(r"\w+")


def as_judged(sentence: str) -> str:
    """Return a sentence as members judge it.

    It has no invisible characters, no look-alikes of Latin letters, no quotes around all of it, no marks of a block quote, and
    no remark about its source, which a verifier tends to believe. A line that ends without a full stop gets one: verifiers are
    trained on whole sentences, and trust such a line less, whatever it says.

    Args:
        sentence: A sentence as `pipeline.text.split` cuts it; not empty.

    Returns:
        The text, not empty; an ordinary sentence as it stands.
    """
    text = as_read(sentence).strip()
    marked = _MARKED.match(text)
    text = text[marked.end() :] if marked else text
    quoted = _QUOTED.fullmatch(text)
    text = quoted[1].strip() + quoted[2] if quoted else text
    text = _without_remarks(_FOREIGN_STOP.sub(".", text))
    return (_ended(text) if text and (text[-1].isalnum() or text[-1] in ";؛；,") else text) or sentence


def _without_remarks(text: str) -> str:
    while True:
        remark = _REMARK.search(text, max(0, len(text) - LONGEST_REMARK))
        if remark is None or len(_WORD.findall(text, 0, remark.start())) < FEWEST_WORDS:
            return text
        text = _ended(text[: remark.start()])


def _ended(text: str) -> str:
    """A text with one full stop at its end, where it ends otherwise than a sentence."""
    bare = text.rstrip(",:;؛；–—- ")
    return bare if bare.endswith((".", "!", "?", "…")) or not bare else f"{bare}."
