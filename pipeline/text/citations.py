"""Citations such as `[1]` or `(Passage 2)`: attach them to the sentence before them, and find the passages that they name."""

import re
from collections.abc import Iterable, Sequence

_WORD = (
    r"(?:(?:passage|source|document|doc|context|reference|ref|citation|pasaje|fuente|documento|quelle)s?|passagen|quellen|"
    r"dokumente?|passaggio?|font[ei]|documenti|段落|文档|资料|来源)\.?\s?"
)
_NUMBER = r"[1-9]\d{0,2}"
_NUMBERS = rf"{_NUMBER}(?:\s?(?:,\s?and|,\s?y|[,;&–-]|and|und|et|y|e|和)\s?(?:{_WORD})?{_NUMBER})*"
CITATION = (
    rf"(?i:[\[【]\^?(?:{_WORD})?{_NUMBERS}[\]】]|\((?:see\s)?{_WORD}{_NUMBERS}\)|[(\[]sources?:[^()\[\]\n]{{1,80}}[)\]])"
    r"(?![(:])"
)
"""A regular expression. `[1](…)` is a link and `[1]: …` defines a source: neither is a citation."""

_HAS_NUMBER = re.compile("[1-9]")
_MENTIONS = [
    re.compile(rf"(?i:(?<![a-zà-ÿ]){_WORD}({_NUMBERS}))(?![\d.%]*\d|%)"),  # (Passage 2); according to passages 1 and 3
    re.compile(rf"[\[【]\^?({_NUMBERS})[\]】](?![(:])"),  # [2]
    re.compile(rf"第\s?({_NUMBERS})\s?[段篇条]"),
]
_RANGE = re.compile(rf"({_NUMBER})(?:\s?[–-]\s?({_NUMBER}))?")

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


def find_cited_passages(sentence: str, numbers: Sequence[int]) -> tuple[int, ...]:
    """Find the passages that a sentence cites by their numbers, counted from 1.

    Args:
        sentence: The sentence.
        numbers: Number of each passage in the context as it was logged, counted from 0.

    Returns:
        The indices in `numbers` of the cited passages, in order; empty if the sentence cites none, all, or one that is not
        there: then the numbers may mean something else.
    """
    if not _HAS_NUMBER.search(sentence):
        return ()
    cited: set[int] = set()
    for mention in (text for pattern in _MENTIONS for text in pattern.findall(sentence)):
        for first, last in _RANGE.findall(mention):
            cited.update(range(int(first) - 1, int(last or first)))
    indices = tuple(index for index, number in enumerate(numbers) if number in cited)
    return indices if len(indices) == len(cited) < len(numbers) else ()
