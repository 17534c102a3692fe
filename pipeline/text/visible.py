"""Texts as a person reads them: without characters that can't be seen, and with Latin letters for others that look the same.

A model reads code points, a person reads shapes. What looks the same is to be judged the same.
"""

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]"
)
"""Zero-width and bidirectional controls, soft hyphens, blank fillers, tags."""

_JOINERS = "\u200c\u200d"
"""Needed in scripts such as Persian and Hindi, and in emoji: removed between Latin letters alone."""

_LIKE = dict(
    zip(
        "аеорсухѕіјԁһԛԝьАВЕКМНОРСТУХЅІЈԌԚԜοαινρυκχτεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxsijdhqwbABEKMHOPCTYXSIJGQWoaivpukxteABEZHIKMNOPTYX",
        strict=True,
    )
)
"""Cyrillic and Greek letters -> the Latin letters that they look like."""

_STOPS = {"\u2024": ".", "\ua4f8": ".", "\u037e": ";", "\u01c3": "!", "\ufe52": "."}
_STYLED = ("<font>", "<wide>")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]")


def visible(text: str) -> tuple[str, list[int] | None]:
    """A text without invisible characters, where each stands in the original.

    Within a word they are removed; elsewhere a space stands in their place, since they may be all that parts two sentences.

    Args:
        text: Any text.

    Returns:
        The text, and for each of its characters the offset in the original; None where nothing was changed.
    """
    if text.isascii() or not (_INVISIBLE.search(text) or any(stop in text for stop in _STOPS)):
        return text, None
    kept: list[str] = []
    places: list[int] = []
    for i, char in enumerate(text):
        if not _INVISIBLE.match(char):
            kept.append(_STOPS.get(char, char))
            places.append(i)
        elif char in _JOINERS and not _between_latin(text, i):
            kept.append(char)
            places.append(i)
        elif not (kept and kept[-1].isalnum() and text[i + 1 : i + 2].isalnum()):
            kept.append(" ")
            places.append(i)
    return "".join(kept), places


def _between_latin(text: str, place: int) -> bool:
    return bool(_LATIN.match(text[place - 1 : place]) or _LATIN.match(text[place + 1 : place + 2]))


def as_read(text: str) -> str:
    """A text as a person reads it; one of ASCII characters is returned as it is.

    Args:
        text: Any text.
    """
    if text.isascii():
        return text
    shown, _ = visible(text)
    shown = "".join(_base(char) for char in shown)
    # Where no letter is Latin, Cyrillic and Greek ones are what they look like.
    return _WORD.sub(lambda word: _latin(word[0]), shown) if _LATIN.search(shown) else shown


def _latin(word: str) -> str:
    """A word in Latin letters, where all of its letters are, or look like Latin ones; any other as it is."""
    plain = "".join(_LIKE.get(char, char) for char in word)
    return plain if plain.isascii() else word


def _base(char: str) -> str:
    """A letter or digit of full width or of mathematical notation as itself; an accented one stays."""
    return (
        unicodedata.normalize("NFKC", char) if char.isalnum() and unicodedata.decomposition(char).startswith(_STYLED) else char
    )
