"""Split responses into sentences with exact character offsets.

spaCy finds sentence ends inside a block of running text; before that, line structure (bullets, headings, table rows,
code) cuts the response into blocks, so that a list or a code block never becomes one giant sentence. A sentence that says
several things is cut into clauses then (`pipeline.text.clauses`). Citations stand with the sentence before them.

The law: sentences are in order and do not overlap, none starts or ends with white space, and every letter or digit of
the response (fence lines such as ```python aside) lies in exactly one of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ragassay.pipeline import errors
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.text.citations import give_back
from ragassay.pipeline.text.clauses import clauses
from ragassay.pipeline.text.sentence_ends import FULL_STOPS, Span, line_ends, mend
from ragassay.pipeline.text.spacy_import import import_spacy
from ragassay.pipeline.text.visible import visible

MAX_SENTENCE_CHARS = 2000
"""A longer sentence (a response without punctuation) is cut at white space, so that it fits any model's window."""

MAX_BLOCK_CHARS = 100_000
"""spaCy refuses documents over 1,000,000 characters, and a parser's memory grows with them."""

_SENTENCE_COMPONENTS = ("parser", "senter", "sentencizer")
MANY_LANGUAGES = "xx"
_FOREIGN_TOKENIZERS = {"ja", "ko", "th", "vi"}
"""Languages whose tokenizers in spaCy want packages of other makers: sentences end at the same full stops without them, and the
same texts have the same sentences wherever they are split."""

LONGEST_WORD = 256
"""spaCy's tokenizer takes the cube of a run of punctuation marks: what has no white space for longer is cut for it."""

_ITEM = re.compile(r"\s*(?:[-*+•–▪◦]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|\|)\s*(?=\S)")
_FENCE = re.compile(r"(?:```|~~~)\s*[\w+#.-]*")  # a claim on the same line is no fence
_WRAPPED_LINE = 60  # a line this long that ends no sentence goes on in the next line
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def load_splitter(name: str, language: str) -> Any:
    """Load a spaCy pipeline that sets sentence boundaries.

    Args:
        name: `sentencizer` for spaCy's rules, or an installed pipeline such as `en_core_web_sm`.
        language: Language code of the rules' tokenizer, such as `en`; an installed pipeline has its own.

    Returns:
        A spaCy `Language`, with only the components that sentence boundaries need.

    Raises:
        ConfigError: The pipeline is not installed, or spaCy has no such language.
    """
    spacy = import_spacy()
    check_language(language)
    if name == "sentencizer":
        nlp = spacy.blank(MANY_LANGUAGES if language in _FOREIGN_TOKENIZERS else language)
        nlp.add_pipe("sentencizer")
    else:
        try:
            nlp = spacy.load(name)
        except OSError as error:
            raise ConfigError(errors.SPLITTER_NOT_INSTALLED, pipeline=name) from error
        except ImportError as error:
            reason = " ".join(str(error).split())
            raise ConfigError(errors.SPLITTER_LACKS_PACKAGE, pipeline=name, reason=reason) from error
        found = [c for c in _SENTENCE_COMPONENTS if c in nlp.pipe_names][:1]
        if found:
            nlp.select_pipes(enable=[c for c in ("transformer", "tok2vec", *found) if c in nlp.pipe_names])
        else:
            nlp.select_pipes(enable=[])
            nlp.add_pipe("sentencizer")
    return nlp


def sentences_with(name: str, language: str) -> Callable[[str], list[Span]]:
    """What splits one text; the splitter is loaded when it is first wanted. See `load_splitter`."""
    nlp: list[Any] = []

    def sentences_of(text: str) -> list[Span]:
        if not nlp:
            nlp.append(load_splitter(name, language))
        return split(nlp[0], [text])[0]

    return sentences_of


def check_language(language: str) -> None:
    """Check that spaCy knows a language.

    Raises:
        ConfigError: It does not.
    """
    try:
        import_spacy().util.get_lang_class(language)
    except ImportError as error:
        raise ConfigError(errors.UNKNOWN_LANGUAGE, language=language) from error


def split(nlp: Any, responses: Sequence[str]) -> list[list[Span]]:
    """Split responses into sentences.

    Args:
        nlp: What `load_splitter` returned.
        responses: Texts of any length.

    Returns:
        A list a response of (start, end) character offsets; empty for a response without a letter or digit.
    """
    shown = [visible(text) for text in responses]
    found = _split(nlp, [text for text, _ in shown])
    return [
        spans if places is None else [(places[start], places[end - 1] + 1) for start, end in spans]
        for spans, (_, places) in zip(found, shown, strict=True)
    ]


def _split(nlp: Any, responses: Sequence[str]) -> list[list[Span]]:
    """`split` of texts that hold no invisible characters."""
    blocks = [(i, list(_pieces(text, *block))) for i, text in enumerate(responses) for block in _blocks(text)]
    docs = nlp.pipe(responses[i][start:end] for i, pieces in blocks for start, end in pieces)
    result: list[list[Span]] = [[] for _ in responses]
    for i, pieces in blocks:
        spans = [(at + s.start_char, at + s.end_char) for (at, _), doc in zip(pieces, docs, strict=False) for s in doc.sents]
        for span in mend(responses[i], spans, {start for start, _ in pieces[1:]}, nlp.lang):
            for short in _cut(responses[i], span):
                result[i].extend(clauses(responses[i], short))
    return [give_back(text, found, MAX_SENTENCE_CHARS) for text, found in zip(responses, result, strict=True)]


def _blocks(text: str) -> Iterator[Span]:
    """Cut a text into blocks of running text: paragraphs, list items, headings, table rows, lines of code."""
    start = end = None
    fenced = False
    previous = ""
    position = 0
    for line in text.splitlines(keepends=True):
        line_start, position = position, position + len(line)
        fence = _FENCE.fullmatch(line.strip()) is not None
        fenced ^= fence
        goes_on = (
            start is not None
            and not (fenced or fence or _ITEM.match(line) or not line.strip())
            and not line_ends(previous)
            and (len(previous) >= _WRAPPED_LINE or line.lstrip()[:1].islower())
        )
        if not goes_on:
            if start is not None and end is not None:
                yield start, end
            start = None
        if line.strip() and not fence:
            start = line_start if start is None else start
            end = position
        previous = line
    if start is not None and end is not None:
        yield start, end


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a block into what spaCy takes in linear time: inside of long words, behind a full stop if they have one."""
    for word in _LONG_WORD.finditer(text, start, end):
        at = word.start()
        while word.end() - at > LONGEST_WORD:
            at = 1 + max(text.rfind(stop, at, at + LONGEST_WORD) for stop in FULL_STOPS) or at + LONGEST_WORD
            yield from _chunks(text, start, at)
            start = at
    yield from _chunks(text, start, end)


def _chunks(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a block that is too long for one spaCy document: after a full stop, else at a space, else anywhere."""
    while end - start > MAX_BLOCK_CHARS:
        limit = start + MAX_BLOCK_CHARS
        stop = text.rfind(". ", start, limit) + 1 or max(text.rfind(" ", start + 1, limit), 0) or limit
        yield start, stop
        start = stop
    yield start, end


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
