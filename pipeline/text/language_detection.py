"""Detect the language that a row is written in, from clear evidence in its texts.

The response decides. If it has too little text (`Yes, 14 days.`, a name, code), question and response decide together, then the
context. A row without evidence has no language. py3langid ships the model: it computes the probabilities of 114 languages with
ISO 639-1 codes from the byte sequences of a text.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

MAX_CHARS = 1000
"""Characters of the words of a text that the model reads. This bounds the cost of a row."""

MAX_RAW_CHARS = 4 * MAX_CHARS
"""Characters of a text in which words are searched."""

MIN_LETTERS = 10
"""A text with fewer letters in words that begin in lower case has no language: `Ludwig von Nassau` is a name."""

CLEAR_PROBABILITY = 0.9
"""Minimum probability of a sentence's language for the sentence to count."""

MIN_PROBABILITY = 0.5
"""Minimum probability of a text's language if no language is measured. A language above it is the most probable one."""

LONG_TEXT_LETTERS = 60
"""Number of letters from which a text is long: the probabilities of long texts are sharper."""

MAX_MEASURED_PROBABILITY, MAX_MEASURED_PROBABILITY_LONG_TEXT = 0.005, 0.02
"""A text is in another language only if the measured languages together have at most this probability."""

_NO_LANGUAGE = {"zxx", "la"}
"""Text in no language; and Latin, because texts in every language name species, diseases and legal terms in it."""

_SAME_LANGUAGE = {"nb": "no", "nn": "no"}
_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`"  # code
    r"|https?://\S+|www\.\S+|\S+@\S+"
    r"|<[^<>\n]{1,80}>"  # markup
    r"|[\"“”„«][^\"“”„«»\n]{1,400}[\"“”»]|「[^」\n]{1,400}」",  # a quotation is in the language of its source
    re.DOTALL,
)
_NOT_A_WORD = re.compile(r"[\d_/\\=<>{}()\[\]@$%^&|~+#*]|[a-z][A-Z]|\w\.\w")  # part of an identifier, a path, an amount
_EDGES = ".,;:!?¿¡()[]{}<>*#>|…–—-'\"’‘“”„«»。、，；：！？（）「」·।؟،؛"
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？])|\n+")
_NON_LATIN_LETTER = re.compile(r"[^\W\d_\u0000-\u036f\u1e00-\u1eff\u2000-\u2e7f\ua720-\ua7ff\ufb00-\ufb06\uff21-\uff5a]")

_LATIN, _CJK = "", "cjk"
_SCRIPTS = (
    ("el", "\u0370"), ("cyrillic", "\u0400"), ("hy", "\u0530"), ("he", "\u0590"), ("arabic", "\u0600"), ("syriac", "\u0700"),
    ("arabic", "\u0750"), ("thaana", "\u0780"), ("arabic", "\u08a0"), ("devanagari", "\u0900"), ("bengali", "\u0980"),
    ("pa", "\u0a00"), ("gu", "\u0a80"), ("or", "\u0b00"), ("ta", "\u0b80"), ("te", "\u0c00"), ("kn", "\u0c80"),
    ("ml", "\u0d00"), ("si", "\u0d80"), ("th", "\u0e00"), ("lo", "\u0e80"), ("tibetan", "\u0f00"), ("my", "\u1000"),
    ("ka", "\u10a0"), ("ko", "\u1100"), ("ethiopic", "\u1200"), ("other", "\u13a0"), ("km", "\u1780"), ("other", "\u1800"),
    ("el", "\u1f00"), (_CJK, "\u2e80"), ("ko", "\u3130"), (_CJK, "\u3190"), ("other", "\ua000"), ("ko", "\uac00"),
    ("other", "\ud7b0"), (_CJK, "\uf900"), ("other", "\ufb00"), ("he", "\ufb1d"), ("arabic", "\ufb50"), ("other", "\ufe00"),
    ("arabic", "\ufe70"), (_CJK, "\uff66"), ("ko", "\uffa0"), ("other", "\uffe0"), (_CJK, "\U00020000"),
    ("other", "\U00040000"),
)  # fmt: skip
"""Scripts other than Latin, by the first character of each Unicode range. A script of one language has its code."""
_STARTS = [start for _, start in _SCRIPTS]
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_LETTERS_PER_CHARACTER = {_CJK: 3, "ko": 2}
"""How many Latin letters a character of the script is worth."""


class _Words(NamedTuple):
    """The words of a text that are evidence of its language.

    Attributes:
        text: All words.
        lower_case: Words that begin in lower case or whose script has no case, which are not names.
        letters: Number of letters in `lower_case`.
        script: Script of most letters: _LATIN, or one of _SCRIPTS.
    """

    text: str
    lower_case: str
    letters: int
    script: str


def normalize_code(language: str) -> str:
    """Return the language code that stands for a language: `no` for Bokmål and Nynorsk."""
    return _SAME_LANGUAGE.get(language, language)


def detect_row_language(
    question: str | None, context: Sequence[str | None] | None, response: str | None, measured: Collection[str] = ()
) -> str | None:
    """Detect the language of a row.

    Args:
        question: Question, or null.
        context: Passages, or null.
        response: Response, or null.
        measured: ISO 639-1 codes of the languages that a row is assumed to be in unless evidence is clear; empty favors none.

    Returns:
        ISO 639-1 code; None if the texts give no clear evidence.
    """
    answer = response or ""
    question_and_answer = f"{(question or '')[:MAX_RAW_CHARS]}\n{answer}"
    language = detect_language(answer, measured)
    if language is None:
        language = detect_language(question_and_answer, measured)
    if language is None and (measured or _select_words(question_and_answer).letters < MIN_LETTERS):
        language = detect_language(_join_beginning(context or []), measured)
    return language


def detect_language(text: str, measured: Collection[str] = ()) -> str | None:
    """Detect the language of a text. See `detect_row_language`."""
    words = _select_words(text)
    if words.letters < MIN_LETTERS:
        return None
    clear = _find_clear_language(words)
    if clear is not None and (clear in measured or not measured):
        return clear
    probabilities = _compute_probabilities(words.text, words.script)
    best = max(probabilities, key=probabilities.__getitem__)
    if best in _NO_LANGUAGE or (not measured and probabilities[best] < MIN_PROBABILITY):
        return None
    if not measured or best in measured:
        return best
    limit = MAX_MEASURED_PROBABILITY_LONG_TEXT if words.letters >= LONG_TEXT_LETTERS else MAX_MEASURED_PROBABILITY
    if (
        _sum_measured(probabilities, measured) > limit
        or _sum_measured(_compute_probabilities(words.lower_case, words.script), measured) > limit
    ):
        return None
    return _find_majority_language(text, measured) or best


def _find_clear_language(words: _Words) -> str | None:
    """Return the language that has more than half of the probability; None without one, and for a script of one language.

    A shortcut for most rows: without the order of all languages.
    """
    if words.script == _CJK or len(words.script) == 2:
        return None
    language, probability = _load_identifier().classify(unicodedata.normalize("NFC", words.text))
    return None if language in _NO_LANGUAGE or probability <= MIN_PROBABILITY else normalize_code(language)


def _find_majority_language(text: str, measured: Collection[str]) -> str | None:
    """Return the measured language of at least half of the clear sentences. The other sentences are quotations."""
    letters = Counter[str]()
    for sentence in _SENTENCE_END.split(text[:MAX_RAW_CHARS]):
        words = _select_words(sentence)
        if words.letters >= MIN_LETTERS:
            probabilities = _compute_probabilities(words.text, words.script)
            best = max(probabilities, key=probabilities.__getitem__)
            if probabilities[best] >= CLEAR_PROBABILITY:
                letters[best] += len(words.text)
    measured_letters = {code: count for code, count in letters.items() if code in measured}
    if not measured_letters or 2 * sum(measured_letters.values()) < letters.total():
        return None
    return max(measured_letters, key=measured_letters.__getitem__)


def _select_words(text: str) -> _Words:
    """Select words that are evidence of a language: no code, addresses, numbers, quotations, or words in a minority script."""
    prose = _NOT_PROSE.sub(" ", text[:MAX_RAW_CHARS])
    script = _LATIN if prose.isascii() else _find_script(prose)
    kept, length = [], 0
    for raw in prose.split():
        word = raw.strip(_EDGES)
        if not word or (word.isascii() and _NOT_A_WORD.search(word)):
            continue
        if not word.isascii():
            word = "".join(char for char in word if not char.isdigit())
            is_non_latin = _NON_LATIN_LETTER.search(word) is not None
            if is_non_latin != (script != _LATIN):
                continue
        elif script != _LATIN:
            continue
        kept.append(word)
        length += len(word) + 1
        if length > MAX_CHARS:
            break
    if kept and sum(map(str.isupper, kept)) > len(kept) / 2:
        kept = [word.lower() for word in kept]
    lower_case = [word for word in kept if not word[:1].isupper()]
    letters = sum(map(str.isalpha, "".join(lower_case))) * _LETTERS_PER_CHARACTER.get(script, 1)
    return _Words(" ".join(kept)[:MAX_CHARS], " ".join(lower_case)[:MAX_CHARS], letters, script)


def _find_script(text: str) -> str:
    """Return the script of most letters of a text."""
    scripts = Counter(_SCRIPTS[bisect_right(_STARTS, letter) - 1][0] for letter in _NON_LATIN_LETTER.findall(text))
    if not scripts:
        return _LATIN
    script, count = scripts.most_common(1)[0]
    latin = sum(char.isalpha() for char in text) - scripts.total()
    return script if count * _LETTERS_PER_CHARACTER.get(script, 1) > latin else _LATIN


def _join_beginning(context: Sequence[str | None]) -> str:
    """Join passages, up to MAX_RAW_CHARS characters."""
    parts: list[str] = []
    remaining = MAX_RAW_CHARS
    for passage in context:
        if passage and remaining > 0:
            parts.append(passage[:remaining])
            remaining -= len(parts[-1])
    return "\n".join(parts)


def _sum_measured(probabilities: dict[str, float], measured: Collection[str]) -> float:
    return sum(probabilities.get(code, 0.0) for code in measured)


def _compute_probabilities(text: str, script: str) -> dict[str, float]:
    """Return language -> its probability, in [0, 1]."""
    if script == _CJK:
        return {"ja" if len(_KANA.findall(text)) > len(text) / 20 else "zh": 1.0}
    if len(script) == 2:
        return {script: 1.0}
    probabilities: dict[str, float] = {}
    for language, probability in _load_identifier().rank(unicodedata.normalize("NFC", text)):
        code = normalize_code(language)
        probabilities[code] = probabilities.get(code, 0.0) + probability
    return probabilities


@cache
def _load_identifier() -> Any:
    """Load py3langid's model, once per process. Its methods change no state, so threads may share it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([code for code in identifier.labels if len(code) == 2 or code in _NO_LANGUAGE])
    identifier.nb_ptc = np.ascontiguousarray(identifier.nb_ptc)  # it is read by row; `set_languages` stores it by column
    return identifier
