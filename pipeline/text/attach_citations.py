"""Attach citations such as `[1]` or `(Passage 2)` to the sentence before them."""

import re
from collections.abc import Iterable

_WORD = r"(?:passage|source|document|doc|context|reference|ref|citation)s?\.?\s?"
_NUMBERS = rf"[1-9]\d{{0,2}}(?:\s?(?:[,;&–-]|and)\s?(?:{_WORD})?[1-9]\d{{0,2}})*"
CITATION = (
    rf"(?i:[\[【]\^?(?:{_WORD})?{_NUMBERS}[\]】]|\((?:see\s)?{_WORD}{_NUMBERS}\)|[(\[]sources?:[^()\[\]\n]{{1,80}}[)\]])"
    r"(?![(:])"
)
"""A regular expression. `[1](…)` is a link and `[1]: …` defines a source: neither is a citation."""

_LEADING = re.compile(rf"(?:{CITATION}[.,;]?\s*)+(?=[\"“‘(¿¡]?([^\W_]))")
_PUNCTUATION = r"(?:_|[^\w\[(【])*"
_ONLY_CITATIONS = re.compile(rf"{_PUNCTUATION}(?:{CITATION}{_PUNCTUATION})+")


def attach_citations(text: str, spans: Iterable[tuple[int, int]], max_chars: int) -> list[tuple[int, int]]:
    """Move each citation into the sentence before it: the `[1]` of "It opens at nine. [1] Refunds take weeks." into the first.

    A line that begins with a citation puts citations before its sentences, so its citations stay where they are. A span with
    nothing but citations joins the sentence before it, or at the start of the text the sentence after it.

    Args:
        text: The whole text.
        spans: Its sentences, in order.
        max_chars: A sentence with more characters takes no further citations.
    """
    result: list[tuple[int, int]] = []
    last_is_citation = cites_first = False  # the last span has only citations; its line begins with a citation
    is_lower_case = text.lstrip()[:1].islower()
    for start, end in spans:
        last_start, last_end = result[-1] if result else (start, start)
        is_citation = _ONLY_CITATIONS.fullmatch(text, start, end) is not None
        if result and (is_citation or last_is_citation) and end - last_start <= max_chars:
            result[-1] = (last_start, end)
            last_is_citation &= is_citation
            continue
        last_is_citation = is_citation
        leading = _LEADING.match(text, start, end)
        new_start = start
        if not result or len((text[last_end:start] + "x").splitlines()) > 1:
            cites_first = leading is not None
        elif (
            leading
            and not cites_first
            and (is_lower_case or not leading[1].islower())
            and leading.end() - last_start <= max_chars
        ):
            new_start = leading.end()
            result[-1] = (last_start, start + len(text[start:new_start].rstrip()))
        result.append((new_start, end))
    return result
