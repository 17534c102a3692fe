"""Citations such as `[1]` or `(Passage 2)`: no sentences, they belong to the sentence before them."""

import re
from collections.abc import Iterable

_WORD = r"(?:passage|source|document|doc|context|reference|ref|citation)s?\.?\s?"
_NUMBERS = rf"[1-9]\d{{0,2}}(?:\s?(?:[,;&–-]|and)\s?(?:{_WORD})?[1-9]\d{{0,2}})*"
CITATION = (
    rf"(?i:[\[【]\^?(?:{_WORD})?{_NUMBERS}[\]】]|\((?:see\s)?{_WORD}{_NUMBERS}\)|[(\[]sources?:[^()\[\]\n]{{1,80}}[)\]])"
    r"(?![(:])"
)
"""A regular expression; `[1](…)` is a link and `[1]: …` the source itself."""

_LEADING = re.compile(rf"(?:{CITATION}[.,;]?\s*)+(?=[\"“‘(¿¡]?([^\W_]))")
_SIGNS = r"(?:_|[^\w\[(【])*"
_ALONE = re.compile(rf"{_SIGNS}(?:{CITATION}{_SIGNS})+")


def give_back(text: str, spans: Iterable[tuple[int, int]], longest: int) -> list[tuple[int, int]]:
    """Put citations with the sentence before them: of "It opens at nine. [1] Refunds take weeks." the `[1]` with the first.

    A line that begins with a citation has them before its sentences, and keeps them there. What is nothing but citations joins
    the sentence before, or at the start of a text the one behind.

    Args:
        text: The whole text.
        spans: Its sentences, in order.
        longest: No sentence grows over so many characters.
    """
    result: list[tuple[int, int]] = []
    alone = leads = False  # whether the last of the result is nothing but citations; whether its line began with one
    small = text.lstrip()[:1].islower()
    for start, end in spans:
        begun, stop = result[-1] if result else (start, start)
        bare = _ALONE.fullmatch(text, start, end) is not None
        if result and (bare or alone) and end - begun <= longest:
            result[-1] = (begun, end)
            alone &= bare
            continue
        alone = bare
        found = _LEADING.match(text, start, end)
        first = start
        if not result or len((text[stop:start] + "x").splitlines()) > 1:
            leads = found is not None
        elif found and not leads and (small or not found[1].islower()) and found.end() - begun <= longest:
            first = found.end()
            result[-1] = (begun, start + len(text[start:first].rstrip()))
        result.append((first, end))
    return result
