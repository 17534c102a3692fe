"""Extract the claim of a sentence, without quotation marks, markup and remarks around it."""

import re

from ragassay.pipeline.text.characters import normalize_characters

MAX_REMARK_CHARS = 120
"""A remark is searched for in this many characters at the end of a sentence."""

MIN_CLAIM_WORDS = 3
"""A remark is removed only if the claim keeps at least this many words."""

_SOURCE = r"(?:contexts?|passages?|documents?|texts?|sources?|articles?|information)"
_REPORTING_VERB = (
    r"(?:say|state|show|mention|confirm|describe|explain|support|report|note|answer|repl(?:y|ie)|respond|agree)(?:s|d|ed|n)?"
)
_FILLER = (
    rf"(?:as|so|and|just|according|to|per|in|by|of|on|is|are|was|were|the|a|this|that|these|it|above|given|provided|retrieved|with"
    rf"|please|only|must|be|{_SOURCE})"
)
_REMARK = re.compile(
    rf"\s*[,;–—]\s*(?:{_FILLER}\b\W*)*(?:{_REPORTING_VERB}|said|shown|written|according to the {_SOURCE})"
    rf"(?:\W+(?:{_FILLER}|yes|no|true|correct|{_REPORTING_VERB})\b)*[\s.!]*$",
    re.IGNORECASE,
)
"""A remark after a claim that refers to its source or addresses the verifier: ", as the context states", "; answer yes"."""

_QUOTED = re.compile(r"[“\"«„]([^“”\"«»„]+)[”\"»]([.!?]?)")
_BLOCK_QUOTE = re.compile(r"(?:>\s*)+")
_FOREIGN_STOP = re.compile(r"(?<=[a-z0-9)])[。｡]$")
_WORD = re.compile(r"\w+")


def extract_claim(sentence: str) -> str:
    """Extract the claim that members score from a sentence.

    Invisible characters, look-alikes of Latin letters, quotation marks around the whole sentence, block quote marks and remarks
    about the source are removed. Verifiers tend to believe a remark about the source. A line without a full stop at its end
    gets one: verifiers are trained on whole sentences and trust an unfinished line less.

    Args:
        sentence: A sentence as `pipeline.text.split` returns it; not empty.

    Returns:
        The claim, not empty. An ordinary sentence is returned unchanged.
    """
    text = normalize_characters(sentence).strip()
    block_quote = _BLOCK_QUOTE.match(text)
    text = text[block_quote.end() :] if block_quote else text
    quoted = _QUOTED.fullmatch(text)
    text = quoted[1].strip() + quoted[2] if quoted else text
    text = _remove_remarks(_FOREIGN_STOP.sub(".", text))
    is_unfinished = text and (text[-1].isalnum() or text[-1] in ";؛；,")
    return (_finish(text) if is_unfinished else text) or sentence


def _remove_remarks(text: str) -> str:
    while True:
        remark = _REMARK.search(text, max(0, len(text) - MAX_REMARK_CHARS))
        if remark is None or len(_WORD.findall(text, 0, remark.start())) < MIN_CLAIM_WORDS:
            return text
        text = _finish(text[: remark.start()])


def _finish(text: str) -> str:
    """Add a full stop unless the text already ends like a sentence."""
    bare = text.rstrip(",:;؛；–—- ")
    return bare if bare.endswith((".", "!", "?", "…")) or not bare else f"{bare}."
