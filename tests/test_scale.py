"""The table in results/scale.md matches the code."""

import re

from tests.benchmarks.scale_projection import MARK, PAGE, measure, read_tokens_per_response, render_table

NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?(?:e\+\d+)?)(?: (B|kB|MB|GB)\b)?")
UNITS = {"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
NEAR = 0.1


def split_numbers(text: str) -> tuple[str, list[float]]:
    """Split a text into its words and its numbers; sizes are in bytes."""
    return NUMBER.sub("#", text), [float(number.replace(",", "")) * UNITS[unit] for number, unit in NUMBER.findall(text)]


def test_the_table_matches_the_code() -> None:
    section = PAGE.read_text().partition(MARK)[2].partition("\n## ")[0].strip()
    written_lines, computed_lines = section.splitlines(), render_table(measure()).splitlines()
    assert len(written_lines) == len(computed_lines) > 20
    for written, computed in zip(written_lines, computed_lines, strict=True):
        (words, figures), (computed_words, computed_figures) = split_numbers(written), split_numbers(computed)
        assert words == computed_words, f"{written!r} is now {computed!r}: run python -m tests.benchmarks.scale_projection"
        pairs = zip(figures, computed_figures, strict=True)
        assert all(abs(a - b) <= NEAR * b for a, b in pairs), f"{written!r} is now {computed!r}"


def test_tokens_per_response_are_read_from_the_measurements() -> None:
    counts = read_tokens_per_response()
    assert len(counts) == 3 and all(100 < count < 1000 for count in counts.values())
