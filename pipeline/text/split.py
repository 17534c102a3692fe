"""Split responses into sentences with exact character offsets.

Line structure (bullets, headings, table rows, code) cuts a response into blocks, so that a list or a code block never becomes
one giant sentence. spaCy finds the sentence ends inside each block. A sentence with several claims is then split into clauses
(`pipeline.text.clauses`), and citations join the sentence before them.

Invariant: sentences are in order and do not overlap, none begins or ends with white space, and every letter or digit of the
response, except in fence lines such as ```python, is in exactly one sentence.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ragassay.pipeline import errors
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.text.characters import remove_invisible
from ragassay.pipeline.text.citations import attach_citations
from ragassay.pipeline.text.clauses import split_clauses
from ragassay.pipeline.text.sentence_ends import FULL_STOPS, Span, can_end_sentence, correct_sentence_ends
from ragassay.pipeline.text.spacy_import import import_spacy

MAX_SENTENCE_CHARS = 2000
"""A longer sentence, such as a response without punctuation, is cut at white space, so that it fits any model's window."""

MAX_BLOCK_CHARS = 100_000
"""A longer block is cut: spaCy refuses documents over 1,000,000 characters, and a parser's memory grows with their length."""

_SENTENCE_COMPONENTS = ("parser", "senter", "sentencizer")
MULTI_LANGUAGE = "xx"
_FOREIGN_TOKENIZERS = {"ja", "ko", "th", "vi"}
"""Languages whose spaCy tokenizers need third-party packages. The multi-language tokenizer replaces them, so that a text has
the same sentences on every machine. Sentences end at the same full stops."""

MAX_WORD_CHARS = 256
"""A longer word is cut for spaCy, whose tokenizer takes time cubic in the length of a run of punctuation marks."""

_ITEM = re.compile(r"\s*(?:[-*+•–▪◦]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|\|)\s*(?=\S)")
_FENCE = re.compile(r"(?:```|~~~)\s*[\w+#.-]*")  # a line with a claim is not a fence
_WRAPPED_LINE = 60  # a line with at least this many characters continues on the next line unless a sentence ends with it
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD_CHARS + 1},}}")


def load_splitter(name: str, language: str) -> Any:
    """Load a spaCy pipeline that sets sentence boundaries.

    Args:
        name: `sentencizer` for spaCy's rules, or an installed pipeline such as `en_core_web_sm`.
        language: Language code for the tokenizer of the rules, such as `en`. An installed pipeline has its own language.

    Returns:
        A spaCy `Language` with only the components that set sentence boundaries.

    Raises:
        ConfigError: The pipeline is not installed, or spaCy does not know the language.
    """
    spacy = import_spacy()
    check_language(language)
    if name == "sentencizer":
        nlp = spacy.blank(MULTI_LANGUAGE if language in _FOREIGN_TOKENIZERS else language)
        nlp.add_pipe("sentencizer")
    else:
        try:
            nlp = spacy.load(name)
        except OSError as error:
            raise ConfigError(errors.SPLITTER_NOT_INSTALLED, pipeline=name) from error
        except ImportError as error:
            reason = " ".join(str(error).split())
            raise ConfigError(errors.SPLITTER_LACKS_PACKAGE, pipeline=name, reason=reason) from error
        components = [name for name in _SENTENCE_COMPONENTS if name in nlp.pipe_names][:1]
        if components:
            nlp.select_pipes(enable=[name for name in ("transformer", "tok2vec", *components) if name in nlp.pipe_names])
        else:
            nlp.select_pipes(enable=[])
            nlp.add_pipe("sentencizer")
    return nlp


def make_sentence_splitter(name: str, language: str) -> Callable[[str], list[Span]]:
    """Return a function that splits one text. It loads the splitter at the first call; see `load_splitter`."""
    nlp: list[Any] = []

    def split_text(text: str) -> list[Span]:
        if not nlp:
            nlp.append(load_splitter(name, language))
        return split_sentences(nlp[0], [text])[0]

    return split_text


def check_language(language: str) -> None:
    """Check that spaCy knows a language.

    Raises:
        ConfigError: spaCy does not know it.
    """
    try:
        import_spacy().util.get_lang_class(language)
    except ImportError as error:
        raise ConfigError(errors.UNKNOWN_LANGUAGE, language=language) from error


def split_sentences(nlp: Any, responses: Sequence[str]) -> list[list[Span]]:
    """Split responses into sentences.

    Args:
        nlp: Result of `load_splitter`.
        responses: Texts of any length.

    Returns:
        (start, end) character offsets of the sentences of each response; none for a response without a letter or digit.
    """
    visible_texts = [remove_invisible(text) for text in responses]
    sentences = _split_visible(nlp, [text for text, _ in visible_texts])
    return [
        spans if offsets is None else [(offsets[start], offsets[end - 1] + 1) for start, end in spans]
        for spans, (_, offsets) in zip(sentences, visible_texts, strict=True)
    ]


def _split_visible(nlp: Any, responses: Sequence[str]) -> list[list[Span]]:
    """Split texts without invisible characters."""
    blocks = [(i, list(_cut_block(text, *block))) for i, text in enumerate(responses) for block in _find_blocks(text)]
    docs = nlp.pipe(responses[i][start:end] for i, pieces in blocks for start, end in pieces)
    sentences: list[list[Span]] = [[] for _ in responses]
    for i, pieces in blocks:
        spans = [
            (piece_start + sentence.start_char, piece_start + sentence.end_char)
            for (piece_start, _), doc in zip(pieces, docs, strict=False)
            for sentence in doc.sents
        ]
        for span in correct_sentence_ends(responses[i], spans, {start for start, _ in pieces[1:]}, nlp.lang):
            for short in _cut_sentence(responses[i], span):
                sentences[i].extend(split_clauses(responses[i], short))
    return [attach_citations(text, spans, MAX_SENTENCE_CHARS) for text, spans in zip(responses, sentences, strict=True)]


def _find_blocks(text: str) -> Iterator[Span]:
    """Find the blocks of running text: paragraphs, list items, headings, table rows, lines of code."""
    start = end = None
    is_fenced = False
    previous = ""
    position = 0
    for line in text.splitlines(keepends=True):
        line_start, position = position, position + len(line)
        is_fence = _FENCE.fullmatch(line.strip()) is not None
        is_fenced ^= is_fence
        continues_block = (
            start is not None
            and not (is_fenced or is_fence or _ITEM.match(line) or not line.strip())
            and not can_end_sentence(previous)
            and (len(previous) >= _WRAPPED_LINE or line.lstrip()[:1].islower())
        )
        if not continues_block:
            if start is not None and end is not None:
                yield start, end
            start = None
        if line.strip() and not is_fence:
            start = line_start if start is None else start
            end = position
        previous = line
    if start is not None and end is not None:
        yield start, end


def _cut_block(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a block into pieces that spaCy processes in linear time: inside long words, after a full stop if they have one."""
    for word in _LONG_WORD.finditer(text, start, end):
        cut = word.start()
        while word.end() - cut > MAX_WORD_CHARS:
            cut = 1 + max(text.rfind(stop, cut, cut + MAX_WORD_CHARS) for stop in FULL_STOPS) or cut + MAX_WORD_CHARS
            yield from _cut_long_text(text, start, cut)
            start = cut
    yield from _cut_long_text(text, start, end)


def _cut_long_text(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a text that is too long for one spaCy document: after a full stop, else at a space, else anywhere."""
    while end - start > MAX_BLOCK_CHARS:
        limit = start + MAX_BLOCK_CHARS
        stop = text.rfind(". ", start, limit) + 1 or max(text.rfind(" ", start + 1, limit), 0) or limit
        yield start, stop
        start = stop
    yield start, end


def _cut_sentence(text: str, span: Span) -> Iterator[Span]:
    """Strip white space, drop spans without a letter or digit, and cut sentences longer than MAX_SENTENCE_CHARS."""
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
