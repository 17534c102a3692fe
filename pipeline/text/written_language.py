"""Find the language that a row is written in, from clear evidence in its texts.

The response decides. Where it says too little (`Yes, 14 days.`, a name, code), question and response together decide, then the
context. A row without evidence has no language. The language model is py3langid's, which its package ships: probabilities of
114 languages with ISO 639-1 codes, from the byte sequences of a text.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

MAX_CHARS = 1000
"""Characters of a text's words that are looked at, so that the cost of a row is bounded."""

MAX_RAW_CHARS = 4 * MAX_CHARS
"""Characters of a text in which these words are looked for."""

MIN_LETTERS = 10
"""A text with fewer letters, in words that begin with a small letter, has no language: `Ludwig von Nassau` is a name."""

CLEAR = 0.9
"""Probability of a sentence's language with which it counts against other sentences."""

LIKELY = 0.5
"""Probability of a text's language, where no language is measured."""

FOREIGN, FOREIGN_LONG, LONG = 0.005, 0.02, 60
"""A text is in another language only if the measured languages together have less than this probability; FOREIGN_LONG holds for
texts with LONG letters or more, whose probabilities are sharper."""

_NO_LANGUAGE = {"zxx", "la"}
"""Text in no language; and Latin, in which species, diseases and terms of law are named in every language."""

_ALIKE = {"nb": "no", "nn": "no"}
_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`"  # code
    r"|https?://\S+|www\.\S+|\S+@\S+"
    r"|<[^<>\n]{1,80}>"  # markup
    r"|[\"“”„«][^\"“”„«»\n]{1,400}[\"“”»]|「[^」\n]{1,400}」",  # a quotation is in its source's language
    re.DOTALL,
)
_NO_WORD = re.compile(r"[\d_/\\=<>{}()\[\]@$%^&|~+#*]|[a-z][A-Z]|\w\.\w")  # part of an identifier, a path, an amount
_EDGES = ".,;:!?¿¡()[]{}<>*#>|…–—-'\"’‘“”„«»。、，；：！？（）「」·।؟،؛"
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？])|\n+")
_OTHER_LETTERS = re.compile(r"[^\W\d_\u0000-\u036f\u1e00-\u1eff\u2000-\u2e7f\ua720-\ua7ff\ufb00-\ufb06\uff21-\uff5a]")

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
"""First letter of each stretch of scripts that are not Latin. A script of one language has its code."""
_STARTS = [start for _, start in _SCRIPTS]
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_LETTERS_A_SIGN = {_CJK: 3, "ko": 2}
"""Signs of these scripts say as much as so many letters."""


class _Words(NamedTuple):
    """The words of a text that tell its language.

    Attributes:
        text: All of them.
        small: Those that begin with a small letter, or have no case: no names.
        letters: Letters of `small`.
        script: Script of the most letters: _LATIN, or one of _SCRIPTS.
    """

    text: str
    small: str
    letters: int
    script: str


def code_of(language: str) -> str:
    """The code by which a language counts: Bokmål and Nynorsk are Norwegian."""
    return _ALIKE.get(language, language)


def language_of_row(
    question: str | None, context: Sequence[str | None] | None, response: str | None, measured: Collection[str] = ()
) -> str | None:
    """Find the language of a row.

    Args:
        question: Question, or null.
        context: Passages, or null.
        response: Response, or null.
        measured: ISO 639-1 codes of the languages that a row is taken for unless the evidence is clear; empty favors none.

    Returns:
        ISO 639-1 code; None where the texts give no clear evidence.
    """
    answer = response or ""
    both = f"{(question or '')[:MAX_RAW_CHARS]}\n{answer}"
    found = language_of_text(answer, measured)
    if found is None:
        found = language_of_text(both, measured)
    if found is None and (measured or _words(both).letters < MIN_LETTERS):
        found = language_of_text(_beginning(context or []), measured)
    return found


def language_of_text(text: str, measured: Collection[str] = ()) -> str | None:
    """Find the language of one text. See `language_of_row`."""
    words = _words(text)
    if words.letters < MIN_LETTERS:
        return None
    chances = _chances(words.text, words.script)
    best = max(chances, key=chances.__getitem__)
    if best in _NO_LANGUAGE:
        return None
    if not measured:
        return best if chances[best] >= LIKELY else None
    if best in measured:
        return best
    limit = FOREIGN_LONG if words.letters >= LONG else FOREIGN
    if _share(chances, measured) > limit or _share(_chances(words.small, words.script), measured) > limit:
        return None
    return _of_most_sentences(text, measured) or best


def _of_most_sentences(text: str, measured: Collection[str]) -> str | None:
    """The measured language that at least half of a text's clear sentences are in: the others are quotations."""
    letters = Counter[str]()
    for piece in _SENTENCE_END.split(text[:MAX_RAW_CHARS]):
        words = _words(piece)
        if words.letters >= MIN_LETTERS:
            chances = _chances(words.text, words.script)
            best = max(chances, key=chances.__getitem__)
            if chances[best] >= CLEAR:
                letters[best] += len(words.text)
    known = {code: count for code, count in letters.items() if code in measured}
    return max(known, key=known.__getitem__) if known and 2 * sum(known.values()) >= letters.total() else None


def _words(text: str) -> _Words:
    """The words that tell a text's language: no code, addresses, numbers, quotations, nor words in a script of the minority."""
    prose = _NO_PROSE.sub(" ", text[:MAX_RAW_CHARS])
    script = _LATIN if prose.isascii() else _script_of(prose)
    kept, length = [], 0
    for raw in prose.split():
        word = raw.strip(_EDGES)
        if not word or (word.isascii() and _NO_WORD.search(word)):
            continue
        if not word.isascii():
            word = "".join(sign for sign in word if not sign.isdigit())
            others = _OTHER_LETTERS.search(word) is not None
            if others != (script != _LATIN):
                continue
        elif script != _LATIN:
            continue
        kept.append(word)
        length += len(word) + 1
        if length > MAX_CHARS:
            break
    if kept and sum(map(str.isupper, kept)) > len(kept) / 2:
        kept = [word.lower() for word in kept]
    small = [word for word in kept if not word[:1].isupper()]
    letters = sum(sign.isalpha() for word in small for sign in word) * _LETTERS_A_SIGN.get(script, 1)
    return _Words(" ".join(kept)[:MAX_CHARS], " ".join(small)[:MAX_CHARS], letters, script)


def _script_of(text: str) -> str:
    """The script of the most letters of a text."""
    others = Counter(_SCRIPTS[bisect_right(_STARTS, sign) - 1][0] for sign in _OTHER_LETTERS.findall(text))
    if not others:
        return _LATIN
    script, count = others.most_common(1)[0]
    latin = sum(sign.isalpha() for sign in text) - others.total()
    return script if count * _LETTERS_A_SIGN.get(script, 1) > latin else _LATIN


def _beginning(context: Sequence[str | None]) -> str:
    found: list[str] = []
    room = MAX_RAW_CHARS
    for passage in context:
        if passage and room > 0:
            found.append(passage[:room])
            room -= len(found[-1])
    return "\n".join(found)


def _share(chances: dict[str, float], measured: Collection[str]) -> float:
    return sum(chances.get(code, 0.0) for code in measured)


def _chances(text: str, script: str) -> dict[str, float]:
    """Language -> its probability, in [0, 1]."""
    if script == _CJK:
        return {"ja" if len(_KANA.findall(text)) > len(text) / 20 else "zh": 1.0}
    if len(script) == 2:
        return {script: 1.0}
    chances: dict[str, float] = {}
    for language, chance in _identifier().rank(unicodedata.normalize("NFC", text)):
        chances[code_of(language)] = chances.get(code_of(language), 0.0) + chance
    return chances


@cache
def _identifier() -> Any:
    """py3langid's model, loaded once a process. It changes nothing in itself when asked, so threads may share it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    found = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    found.set_languages([code for code in found.labels if len(code) == 2 or code in _NO_LANGUAGE])
    return found
