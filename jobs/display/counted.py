"""Format counts with their nouns."""


def format_count(number: float, noun: str) -> str:
    """Format a count with its noun, such as "1 row" or "1,204 rows"; the plural of the noun ends in s."""
    return f"{number:,.0f} {noun}" + ("" if round(number) == 1 else "s")
