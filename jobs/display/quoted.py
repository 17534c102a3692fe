"""Quote values of logs in errors: short values as they are, longer texts only by their length. No error prints log text."""

from collections.abc import Collection
from typing import Any

MOST_OF_LABEL = 24
"""Maximum characters of a label; a longer value counts as text."""

MOST_OF_ID = 64
"""Maximum characters of an id that is quoted: the length of a SHA-256."""

SHOWN = 5
"""Maximum values that an error quotes."""


def quoted(value: Any, most: int = MOST_OF_LABEL) -> str:
    """Describe a value of a log for an error.

    Args:
        value: The value.
        most: Maximum characters of a string that is quoted.

    Returns:
        The value, or its type and length.
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= most and "\n" not in value else f"a text of {len(value):,} characters"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:most]
    return f"a {type(value).__name__}"


def some_of(values: Collection[str]) -> str:
    """Summarize the distinct values of a text column: their number, and some of them if all are short enough to be labels.

    Args:
        values: The values, each once.
    """
    labels = sorted(value for value in values if len(value) <= MOST_OF_LABEL and "\n" not in value)
    count = f"{len(values):,} distinct value{'s' if len(values) != 1 else ''}"
    if len(labels) < len(values):  # one long text makes this a column of texts, whose short values are texts too
        return f"{count}, texts of up to {max(map(len, values)):,} characters"
    ellipsis = ", …" if len(labels) > SHOWN else ""
    return f"{count}: {', '.join(map(repr, labels[:SHOWN]))}{ellipsis}"
