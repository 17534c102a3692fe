"""Content words of a text, as stems, and whether its script puts spaces between words at all."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ragassay.pipeline.text.spacy_import import import_spacy

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese: scripts without spaces between words."""

NO_SPACES_SHARE = 0.3
LONGEST_WORD = 64
SHORTEST_WORD = 2
REMEMBERED = 1 << 18


def has_word_spaces(text: str) -> bool:
    """Whether a text's words can be told apart by its spaces: under 30 % of its characters are of a script without any."""
    return len(_NO_SPACES.findall(text)) < NO_SPACES_SHARE * max(1, len(text))


def content_terms(text: str, language: str) -> list[str]:
    """Stems of a text's content words, in order: lower case, without stop words and single letters.

    Args:
        text: Any text.
        language: ISO 639-1 code: spaCy's stop words, and Snowball's stemmer where it has one for the language.
    """
    stems = _stems(language)
    return [term for word in _WORD.findall(text.lower()) if (term := stems[word])]


def content_words(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and stem of each of a text's content words, as `content_terms` has them."""
    stems = _stems(language)
    for match in _WORD.finditer(text):
        if stem := stems[match[0].lower()]:
            yield match.start(), match.end(), stem


def known_terms(response: str, texts: Iterable[str | None], language: str) -> set[str] | None:
    """Stems of the content words that question and context have; None where a response's words can't be told apart.

    Args:
        response: The response that is held against them.
        texts: Question and passages; None is an empty one.
        language: See `content_terms`.
    """
    if not has_word_spaces(response):
        return None
    return {stem for text in texts if text for stem in content_terms(text, language)}


def new_words(text: str, known: Collection[str], language: str) -> list[str]:
    """The content words of a text whose stems are not known, as they stand in it, each once.

    Args:
        text: Any text.
        known: Stems, as `content_terms` gives them.
        language: See `content_terms`.
    """
    return list(dict.fromkeys(text[a:b] for a, b, stem in content_words(text, language) if stem not in known))


class _Stems(dict[str, str]):
    """Word -> its stem, empty for a stop word; remembered, since texts repeat their words."""

    def __init__(self, language: str) -> None:
        import Stemmer

        super().__init__()
        self._stops = stop_words(language)
        try:
            self._stemmer = Stemmer.Stemmer(language)
        except KeyError:  # Snowball has none: the word itself then
            self._stemmer = None

    def __missing__(self, word: str) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        plain = word.replace("’", "'")
        bare = plain.removesuffix("'s")[:LONGEST_WORD]
        if len(bare) < SHORTEST_WORD or plain in self._stops or bare in self._stops:
            stem = ""
        else:
            stem = str(self._stemmer.stemWord(bare)) if self._stemmer else bare
        self[word] = stem
        return stem


@lru_cache(maxsize=32)
def _stems(language: str) -> _Stems:
    return _Stems(language)


@lru_cache(maxsize=32)
def stop_words(language: str) -> frozenset[str]:
    """spaCy's stop words of a language, in lower case."""
    spacy = import_spacy()
    return frozenset(word.casefold() for word in spacy.util.get_lang_class(language).Defaults.stop_words)
