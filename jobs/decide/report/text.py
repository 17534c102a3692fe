"""Log text made fit to show: what a browser would not show as it stands is made visible, and nothing is cut unsaid."""

import unicodedata

LONGEST = 20_000
TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of writing: with them a text can be made to read as what it is not."""


def visible(text: str) -> str:
    """Text with control characters, and those that turn the direction of writing, as visible code points.

    Line breaks and tabs stay. What is left is still hostile as HTML: the template escapes it.
    """
    return "".join(_shown(c) if _odd(c) else c for c in text)


def shortened(text: str) -> str:
    """`visible`, and cut after LONGEST characters with a word on how many are missing."""
    if len(text) <= LONGEST:
        return visible(text)
    return f"{visible(text[:LONGEST])} [… {len(text) - LONGEST:,} more characters]"


def _odd(character: str) -> bool:
    return character in TURNS or (unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t")


def _shown(character: str) -> str:
    return "\n" if character == "\r" else f"[U+{ord(character):04X}]"
