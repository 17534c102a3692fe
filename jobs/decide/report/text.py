"""Log text made short enough to show, and nothing is cut unsaid."""

from ragassay.jobs.visible import visible

LONGEST = 20_000


def shortened(text: str) -> str:
    """`visible`, and cut after LONGEST characters with a word on how many are missing."""
    if len(text) <= LONGEST:
        return visible(text)
    return f"{visible(text[:LONGEST])} {left_out(len(text) - LONGEST)}"


def left_out(characters: int) -> str:
    """The word on how many are missing."""
    return f"[… {characters:,} more characters]"
