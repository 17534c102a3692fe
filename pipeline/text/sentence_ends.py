"""Where a sentence ends and where it only seems to: what spaCy's rules leave open.

Every rule here looks at a few characters on each side of a place, so that it costs the same in a text of any length.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from ragassay.pipeline.text.citations import CITATION

Span = tuple[int, int]

_SEEN = 40  # characters on each side of an end that the rules look at

FULL_STOPS = "。｡！？‼⁇⁈⁉।॥۔؟።፧፨။។៕։᠃᠉"
"""Ends of sentences in other scripts, good for nothing else, with or without a space behind them."""

_CLOSING = "”’」』）】〕》〉»\"')\\]*_"
_ENDED = re.compile(rf"(?:[.!?．…{FULL_STOPS}])([{_CLOSING}]*)$")
_LINE_ENDED = re.compile(rf"[.!?:;．…{FULL_STOPS}][{_CLOSING}]*$")
# `He left. "She stayed."`: an opening quote, bracket or star belongs to what comes; "so .It" has none.
_OPENING = re.compile(rf"(?<=\s)(?:_|[^\w\s.!?．…{FULL_STOPS}])+$")
_SPACE = re.compile(r"\s")
_FIRST_LETTER = re.compile(r"[\W_]*([^\W_])")
_MARKER = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]")  # a list number that stands alone
# "No. 4" is no sentence end; "9 a.m. The shop" is one, though spaCy's rules keep "a.m." whole.
_NUMBERED = re.compile(r"\b(?:No|Nos|Art|Sec|Fig|Eq|Vol|Ch|p|pp|approx|max|min|ext)\.$", re.IGNORECASE)
_ABBREVIATED = re.compile(
    r"(?<![\w'’])(?:[a-hj-z]|[a-z]{1,2}\.(?:[a-z]{1,4}\.)*[a-z]{1,4}"  # J. or p.o.v.
    r"|etc|approx|aprox|incl|excl|dept|est|avg|min|max|temp|nos|fig|figs|vol|ed|eds|gen|ext|esp|orig|misc|ca|cf|al|resp|viz|ibid|inc"
    r"|co|corp|ltd|sp|spp|ssp|subsp|bldg|prof|rev|dr|mr|mrs|ms|jr|sr|st|mt|ave|rd|blvd|apt|tel|univ|assn|anon|ont|pp|vs|var"
    r"|oz|ft|sq|lb|lbs|tsp|tbsp|qt|qty|pt|pkg|pkgs|sec|hr|hrs|wk|wks|yr|yrs"
    r"|jan|feb|apr|jun|jul|aug|sep|sept|oct|nov|tue|tues|wed|thu|thur|thurs|fri"
    r"|bzw|ggf|vgl|bspw|evtl|inkl|usw|nr|str)\.$",
    re.IGNORECASE,
)
# "in Hello! magazine", "on Sat. and Sun."
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w*!$|\b(?:Sat|Sun|Mon|Mar|Dec|No|Art|Rep|Sen)\.$")
# "no.", "kg.", "env.", "Abb.", "3." are shorter
_LONG_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-]){4,}[.．…]+$")
_FEW_WORDS = 4
_CITATION = re.compile(CITATION)
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\.$")  # "3. maj" in languages that write ordinals like that
_OPENER = (
    "(?:The|A|An|It|Its|This|That|These|Those|There|You|Your|We|Our|They|Their|He|She|I|If|When|While|After|Before|For|In|On|At|"
    "All|Any|Anyone|Anybody|Both|Each|Every|Everyone|Nobody|No|Not|Only|Please|However|Employees|Staff|Otherwise|Unless|Until|To|"
    "Then|Also|As|By|With|Without|From|Under|During|Once|Directly|What|Who|How|Where|Because|Although|Since|So|But|And|Or)"
)
_HIDDEN_END = re.compile(
    rf"\b(?:[ap]\.m\.|etc\.|Inc\.|Ltd\.|U\.S\.|[A-Z]\.|\w+/\w+\.)(?=\s+{_OPENER}\b(?!\.))"  # spaCy keeps these whole
    rf"|(?<=[a-z0-9)”][.!?])(?:{CITATION})+(?=\s)"  # "at nine.[1] It"
    rf"|(?:[{FULL_STOPS}]|(?<!\d)．)+[”’」』）】〕》〉»]*(?=\s*\S)"  # and its English tokenizer does not part other scripts
)


def line_ends(line: str) -> bool:
    """Whether a line's end may be a sentence's: the line below does not go on with it."""
    return _LINE_ENDED.search(line.rstrip()[-_SEEN:]) is not None


def mend(text: str, spans: Sequence[Span], cuts: Collection[int], language: str) -> Iterator[Span]:
    """Join at ends that are none ("approx. five", "No. 4", a bare list number); part at ends that spaCy hides ("a.m. The").

    Args:
        text: The whole text.
        spans: Sentences of one block of it, in order.
        cuts: Places at which the block was cut for spaCy's sake: ends only between a full stop and white space.
        language: spaCy's code of it. Abbreviations are known in English; elsewhere a small letter begins a sentence only where
            the whole text begins with one. A text that passes for English may have others, so where it begins with a capital, a
            sentence that ends before a small letter ends in a word too long to be an abbreviation.
    """
    begins_small = _begins_small(text[:_SEEN])
    joined: list[Span] = []
    for start, end in spans:
        first = start
        if joined:
            begun, stop = joined[-1]
            opening = _OPENING.search(text, max(begun + 1, stop - _SEEN), stop) if stop == start else None
            if opening:
                first = stop = opening.start()  # a white space stands before it
            while stop > begun and text[stop - 1].isspace():
                stop -= 1
            before, after = text[max(begun, stop - _SEEN) : stop], text[first : first + _SEEN]
            if (
                (start in cuts and not (_ENDED.search(before) and _SPACE.search(text, start - 1, start + 1)))
                or (_NUMBERED.search(before) and after.lstrip()[:1].isdigit())
                or _MARKER.fullmatch(before.lstrip())
                or (start == stop and _CITATION.match(text, start - 1))  # spaCy ends "It is![1] Go." behind the bracket
                or (_begins_small(after) and not (stop < first and _ends(before, after, language, begins_small)))
            ):
                joined[-1] = (begun, end)
                continue
            joined[-1] = (begun, first)
        joined.append((first, end))
    for start, end in joined:
        at = start
        for match in _HIDDEN_END.finditer(text, start, end):
            yield at, match.end()
            at = match.end()
        yield at, end


def _begins_small(after: str) -> bool:
    letter = _FIRST_LETTER.match(after)
    return letter is not None and letter[1].islower()


def _ends(before: str, after: str, language: str, begins_small: bool) -> bool:
    """Whether a text ends a sentence although a small letter follows it."""
    ended = _ENDED.search(before)
    if ended is None or ended[1]:  # no full stop, or a quote or bracket behind it: '"Really?" she said'
        return False
    if language != "en" and (not begins_small or _ORDINAL.search(before)):
        return False
    if _ABBREVIATED.search(before) or _NAME.search(before):
        return False
    if begins_small or before[-1] in FULL_STOPS or after.lstrip()[:1] == "`":  # code may begin a sentence and has no capital
        return True
    if before[-1] in ".．…":
        return _LONG_WORD.search(before) is not None
    words = before.split()
    letter = _FIRST_LETTER.match(words[-1])  # "Yahoo! is", "D'oh! of": a capital tells of a name
    return len(words) > _FEW_WORDS or letter is None or not letter[1].isupper()
