"""Remove invisible characters from a text, and replace characters that look like Latin letters by these.

A model reads code points, a person reads shapes. Texts that look the same must get the same score.
"""

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]"
)
"""Zero-width characters, bidirectional controls, soft hyphens, blank fillers and tags."""

_JOINERS = "\u200c\u200d"
"""Zero-width joiners. Scripts such as Persian and Hindi, and emoji, need them: they are removed only next to Latin letters."""

_LATIN_LOOKALIKES = dict(
    zip(
        "аеорсухѕіјԁһԛԝьАВЕКМНОРСТУХЅІЈԌԚԜοαινρυκχτεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxsijdhqwbABEKMHOPCTYXSIJGQWoaivpukxteABEZHIKMNOPTYX",
        strict=True,
    )
)
"""Cyrillic or Greek letter -> the Latin letter that it looks like."""

_PUNCTUATION_LOOKALIKES = {"\u2024": ".", "\ua4f8": ".", "\u037e": ";", "\u01c3": "!", "\ufe52": "."}
_STYLED_FORMS = ("<font>", "<wide>")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]")


def remove_invisible(text: str) -> tuple[str, list[int] | None]:
    """Remove the invisible characters of a text, and replace look-alikes of full stops and other marks.

    An invisible character within a word is removed. Elsewhere a space replaces it, because it can be the only separator between
    two sentences.

    Args:
        text: Any text.

    Returns:
        The new text, and the offset of each of its characters in `text`; None instead of offsets if nothing changed.
    """
    if text.isascii() or not (_INVISIBLE.search(text) or any(mark in text for mark in _PUNCTUATION_LOOKALIKES)):
        return text, None
    kept: list[str] = []
    offsets: list[int] = []
    for i, char in enumerate(text):
        if not _INVISIBLE.match(char):
            kept.append(_PUNCTUATION_LOOKALIKES.get(char, char))
            offsets.append(i)
        elif char in _JOINERS and not _is_next_to_latin(text, i):
            kept.append(char)
            offsets.append(i)
        elif not (kept and kept[-1].isalnum() and text[i + 1 : i + 2].isalnum()):
            kept.append(" ")
            offsets.append(i)
    return "".join(kept), offsets


def _is_next_to_latin(text: str, i: int) -> bool:
    return bool(_LATIN.match(text[i - 1 : i]) or _LATIN.match(text[i + 1 : i + 2]))


def normalize_characters(text: str) -> str:
    """Return a text without invisible characters and with Latin letters for characters that look like them.

    A text of ASCII characters is returned unchanged.
    """
    if text.isascii():
        return text
    plain, _ = remove_invisible(text)
    plain = "".join(_remove_style(char) for char in plain)
    # In a text without Latin letters, Cyrillic and Greek letters are genuine.
    return _WORD.sub(lambda word: _to_latin(word[0]), plain) if _LATIN.search(plain) else plain


def _to_latin(word: str) -> str:
    """Return a word in Latin letters if all of its letters are Latin or look Latin, else the word unchanged."""
    latin = "".join(_LATIN_LOOKALIKES.get(char, char) for char in word)
    return latin if latin.isascii() else word


def _remove_style(char: str) -> str:
    """Return the plain form of a full-width or mathematical letter or digit; any other character unchanged."""
    is_styled = char.isalnum() and unicodedata.decomposition(char).startswith(_STYLED_FORMS)
    return unicodedata.normalize("NFKC", char) if is_styled else char
