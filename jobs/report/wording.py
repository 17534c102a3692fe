"""Put codes into words, and numbers into short forms."""

from collections.abc import Sequence

from ragassay.pipeline.detectors.find_entities import EntityKind

CATEGORY_WORDS = {
    "wrong_value": "Wrong value",
    "wrong_entity": "Wrong name",
    "wrong_relation": "Wrong relation",
    "opposite": "The opposite",
    "condition": "Changed condition",
    "overstated": "Overstated",
    "denied": "Denied",
    "added": "Added",
    "not_a_hallucination": "Supported after all",
}
"""Category of an explanation -> its name."""


def name_category(category: str) -> str:
    """Name a category; one of the user's own is written as in the job file, without underscores."""
    return CATEGORY_WORDS.get(category, category.replace("_", " "))


def describe_missing(kind: str, texts: Sequence[str]) -> str:
    """Describe terms of a kind that a detector misses in the context.

    Args:
        kind: Kind of the terms; see `EntityKind`.
        texts: The terms, at least one.
    """
    quoted = [f"“{text}”" for text in texts]
    terms = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
    verb = "is" if len(texts) == 1 else "are"
    if kind == EntityKind.SEQUENCE:
        return f"{terms} {verb} not in this order in the passages."
    return f"{terms} {verb} not in the passages."


def format_share(share: float) -> str:
    """Format a share with one digit."""
    return f"{share:.1%}"


def format_points(difference: float) -> str:
    """Format a difference of two shares in percentage points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", "−")


def format_probability(probability: float | None) -> str:
    """Format a probability for a card; the ends are not exact."""
    if probability is None:
        return ""
    return "< 0.01" if probability < 0.01 else "> 0.99" if probability > 0.99 else f"{probability:.2f}"
