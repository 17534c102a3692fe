"""Values of logs in errors: short ones as they are, texts by their length alone. No error prints the text of a log."""

from collections.abc import Collection
from typing import Any

MOST_OF_LABEL = 24
"""Characters that a label has at most; a longer value is a text."""

MOST_OF_ID = 64
"""Characters of an id that is quoted; a SHA-256 has so many."""

SHOWN = 5
"""Values that an error quotes at most."""


def quoted(value: Any, most: int = MOST_OF_LABEL) -> str:
    """A value of a log as an error may name it.

    Args:
        value: The value.
        most: Characters up to which a text is quoted.

    Returns:
        The value, or what it is and how long.
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= most and "\n" not in value else f"a text of {len(value):,} characters"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:most]
    return f"a {type(value).__name__}"


def some_of(values: Collection[str]) -> str:
    """Values of a text column that are no labels: how many, and a few of them where all are short enough to be meant as such.

    Args:
        values: The values, each once.
    """
    short = sorted(value for value in values if len(value) <= MOST_OF_LABEL and "\n" not in value)
    count = f"{len(values):,} distinct value{'s' if len(values) != 1 else ''}"
    if len(short) < len(values):  # one text among them makes it a column of texts, whose short ones are texts too
        return f"{count}, texts of up to {max(map(len, values)):,} characters"
    more = ", …" if len(short) > SHOWN else ""
    return f"{count}: {', '.join(map(repr, short[:SHOWN]))}{more}"
