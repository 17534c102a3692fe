"""Counts agree with their nouns."""

import pytest

from ragassay.jobs.display.counted import format_count


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1204, "1,204 rows"), (0.6, "1 row"), (1.6, "2 rows")]
)
def test_a_count_of_one_is_singular(number: float, text: str) -> None:
    assert format_count(number, "row") == text
