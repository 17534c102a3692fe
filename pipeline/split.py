"""Split responses into sentences with exact character offsets.

spaCy finds sentence ends inside a block of running text; before that, line structure (bullets, headings, table rows,
code) cuts the response into blocks, so that a list or a code block never becomes one giant sentence.

The law: sentences are in order and do not overlap, none starts or ends with white space, and every letter or digit of
the response (fence lines such as ```python aside) lies in exactly one of them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.errors import ConfigError
from pipeline.spacy_import import import_spacy

Span = tuple[int, int]

MAX_SENTENCE_CHARS = 2000
"""A longer sentence (a response without punctuation) is cut at white space, so that it fits any model's window."""

MAX_BLOCK_CHARS = 100_000
"""spaCy refuses documents over 1,000,000 characters, and a parser's memory grows with them."""

_SENTENCE_COMPONENTS = ("parser", "senter", "sentencizer")
_ITEM = re.compile(r"\s*(?:[-*+•–▪◦]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|\|)\s*(?=\S)")
_MARKER = re.compile(r"\s*\(?(?:\d{1,3}|[a-zA-Z])[.)]\s*")  # a list number that stands alone
_FENCE = re.compile(r"\s*(?:```|~~~)\s*[\w+#.-]*\s*$")  # a claim on the same line is no fence
_WRAPPED_LINE = 60  # a line this long that ends no sentence goes on in the next line
_ENDS_SENTENCE = re.compile(r"""[.!?:;。！？]["')\]*_]*\s*$""")
# "No. 4" is no sentence end; "9 a.m. The shop" is one, though spaCy's rules keep "a.m." whole.
_NUMBERED = re.compile(r"\b(?:No|Nos|Art|Sec|Fig|Eq|Vol|Ch|p|pp|approx|max|min|ext)\.$", re.IGNORECASE)
_OPENER = (
    "(?:The|A|An|It|Its|This|That|These|Those|There|You|Your|We|Our|They|Their|He|She|I|If|When|While|After|Before|For|In|On|At|"
    "All|Any|Anyone|Anybody|Both|Each|Every|Everyone|Nobody|No|Not|Only|Please|However|Employees|Staff|Otherwise|Unless|Until|To|"
    "Then|Also|As|By|With|Without|From|Under|During|Once|Directly|What|Who|How|Where|Because|Although|Since|So|But|And|Or)"
)
_HIDDEN_END = re.compile(
    rf"\b(?:[ap]\.m\.|etc\.|Inc\.|Ltd\.|U\.S\.|[A-Z]\.|\w+/\w+\.)(?=\s+{_OPENER}\b(?!\.))"  # spaCy keeps these whole
    r"|[。！？][”」』）]*(?=\s*\S)"  # and its English tokenizer does not part Chinese or Japanese
)


def load_splitter(name: str, language: str) -> Any:
    """Load a spaCy pipeline that sets sentence boundaries.

    Args:
        name: `sentencizer` for spaCy's rules, or an installed pipeline such as `en_core_web_sm`.
        language: Language code of the rules' tokenizer, such as `en`; unused for an installed pipeline.

    Returns:
        A spaCy `Language`, with only the components that sentence boundaries need.

    Raises:
        ConfigError: The pipeline or the language is not installed.
    """
    spacy = import_spacy()
    if name == "sentencizer":
        try:
            nlp = spacy.blank(language)
        except ImportError as error:
            raise ConfigError(f"splitter.language: spaCy has no language {language!r}") from error
        nlp.add_pipe("sentencizer")
    else:
        try:
            nlp = spacy.load(name)
        except OSError as error:
            raise ConfigError(
                f"splitter.name: spaCy pipeline {name!r} is not installed: install it, or use 'sentencizer'"
            ) from error
        found = [c for c in _SENTENCE_COMPONENTS if c in nlp.pipe_names][:1]
        if found:
            nlp.select_pipes(enable=[c for c in ("transformer", "tok2vec", *found) if c in nlp.pipe_names])
        else:
            nlp.select_pipes(enable=[])
            nlp.add_pipe("sentencizer")
    return nlp


def split(nlp: Any, responses: Sequence[str]) -> list[list[Span]]:
    """Split responses into sentences.

    Args:
        nlp: What `load_splitter` returned.
        responses: Texts of any length.

    Returns:
        A list a response of (start, end) character offsets; empty for a response without a letter or digit.
    """
    blocks = [(i, block) for i, text in enumerate(responses) for block in _blocks(text)]
    docs = nlp.pipe(responses[i][start:end] for i, (start, end) in blocks)
    result: list[list[Span]] = [[] for _ in responses]
    for (i, (offset, _)), doc in zip(blocks, docs, strict=True):
        spans = [(offset + s.start_char, offset + s.end_char) for s in doc.sents]
        for span in _mend(responses[i], spans):
            result[i].extend(_cut(responses[i], span))
    return result


def _blocks(text: str) -> Iterator[Span]:
    """Cut a text into blocks of running text: paragraphs, list items, headings, table rows, lines of code."""
    start = end = None
    fenced = False
    previous = ""
    position = 0
    for line in text.splitlines(keepends=True):
        line_start, position = position, position + len(line)
        fence = bool(_FENCE.match(line))
        fenced ^= fence
        goes_on = (
            start is not None
            and not (fenced or fence or _ITEM.match(line) or not line.strip())
            and not _ENDS_SENTENCE.search(previous)
            and (len(previous) >= _WRAPPED_LINE or line.lstrip()[:1].islower())
        )
        if not goes_on:
            if start is not None and end is not None:
                yield from _chunks(text, start, end)
            start = None
        if line.strip() and not fence:
            start = line_start if start is None else start
            end = position
        previous = line
    if start is not None and end is not None:
        yield from _chunks(text, start, end)


def _chunks(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a block that is too long for one spaCy document: after a full stop, else at a space, else anywhere."""
    while end - start > MAX_BLOCK_CHARS:
        limit = start + MAX_BLOCK_CHARS
        stop = text.rfind(". ", start, limit) + 1 or max(text.rfind(" ", start + 1, limit), 0) or limit
        yield start, stop
        start = stop
    yield start, end


def _mend(text: str, spans: list[Span]) -> Iterator[Span]:
    """Join at ends that are none (before a small letter, "No." before 4, a bare list number); part at ends that spaCy's rules
    hide ("a.m. The")."""
    joined: list[Span] = []
    for start, end in spans:
        if joined:
            before = text[joined[-1][0] : joined[-1][1]].rstrip()
            after = text[start:end].lstrip()
            numbered = _NUMBERED.search(before) and after[:1].isdigit()
            if numbered or after[:1].islower() or _MARKER.fullmatch(before):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    for start, end in joined:
        at = start
        for match in _HIDDEN_END.finditer(text, start, end):
            yield at, match.end()
            at = match.end()
        yield at, end


def _cut(text: str, span: Span) -> Iterator[Span]:
    """Strip white space, drop what has no letter or digit, and cut what is longer than MAX_SENTENCE_CHARS."""
    start, end = span
    while start < end:
        stop = min(end, start + MAX_SENTENCE_CHARS)
        if stop < end:
            space = text.rfind(" ", start + 1, stop)
            stop = space if space > start else stop
        piece = text[start:stop]
        if any(c.isalnum() for c in piece):
            yield start + len(piece) - len(piece.lstrip()), stop - (len(piece) - len(piece.rstrip()))
        start = stop
