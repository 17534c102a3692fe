"""Quote values of logs in errors: short values as they are, longer texts only by their length. No error prints log text."""

from collections.abc import Collection
from typing import Any

from ragassay.jobs.display.counted import format_count

MAX_LABEL_CHARS = 24
"""Maximum characters of a label; a longer value counts as text."""

MAX_ID_CHARS = 64
"""Maximum characters of an id that is quoted: the length of a SHA-256."""

MAX_QUOTED_VALUES = 5
"""Maximum values that an error quotes."""


def quote_value(value: Any, max_chars: int = MAX_LABEL_CHARS) -> str:
    """Describe a value of a log for an error.

    Args:
        value: The value.
        max_chars: Maximum characters of a string that is quoted.

    Returns:
        The value, or its type and length.
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= max_chars and "\n" not in value else f"a text of {len(value):,} characters"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)[:max_chars]
    return f"a {type(value).__name__}"


def summarize_values(values: Collection[str]) -> str:
    """Summarize the distinct values of a text column: their number, and some of them if all are short enough to be labels.

    Args:
        values: The values, each once.
    """
    labels = sorted(value for value in values if len(value) <= MAX_LABEL_CHARS and "\n" not in value)
    count = format_count(len(values), "distinct value")
    if len(labels) < len(values):  # one long value means a column of log texts; then short values are not quoted either
        return f"{count}, texts of up to {max(map(len, values)):,} characters"
    ellipsis = ", …" if len(labels) > MAX_QUOTED_VALUES else ""
    return f"{count}: {', '.join(map(repr, labels[:MAX_QUOTED_VALUES]))}{ellipsis}"
