"""The page of figures on paper is what the code makes of itself today."""

import re

from tests.benchmarks.on_paper import MARK, PAGE, measure, table, tokens

NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?(?:e\+\d+)?)(?: (B|kB|MB|GB)\b)?")
UNITS = {"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
NEAR = 0.1


def split(text: str) -> tuple[str, list[float]]:
    """Text without its numbers, and these; sizes in bytes."""
    return NUMBER.sub("#", text), [float(found.replace(",", "")) * UNITS[unit] for found, unit in NUMBER.findall(text)]


def test_the_table_is_that_of_the_code() -> None:
    behind = PAGE.read_text().partition(MARK)[2].partition("\n## ")[0].strip()
    page, now = behind.splitlines(), table(measure()).splitlines()
    assert len(page) == len(now) > 20
    for told, computed in zip(page, now, strict=True):
        (words, figures), (own, found) = split(told), split(computed)
        assert words == own, f"{told!r} is {computed!r} now: python -m tests.benchmarks.on_paper"
        assert all(abs(a - b) <= NEAR * b for a, b in zip(figures, found, strict=True)), f"{told!r} is {computed!r} now"


def test_tokens_are_those_of_the_measurements() -> None:
    found = tokens()
    assert len(found) == 3 and all(100 < each < 1000 for each in found.values())
