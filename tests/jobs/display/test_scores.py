"""Scores next to thresholds."""

import pytest

from ragassay.jobs.display.scores import describe_threshold, format_both


@pytest.mark.parametrize(
    ("score", "threshold", "texts"),
    [
        (0.3869, 0.3851, ("0.387", "0.385")),
        (0.62, 0.3851, ("0.62", "0.39")),
        (0.3851, 0.3851, ("0.39", "0.39")),
        (0.38514, 0.385144, ("0.385140", "0.385144")),
        (-1.25, 3.5, ("-1.25", "3.50")),
    ],
)
def test_a_score_and_its_threshold_have_digits_that_show_the_side(
    score: float, threshold: float, texts: tuple[str, str]
) -> None:
    assert format_both(score, threshold) == texts


def test_a_threshold_states_its_probability() -> None:
    assert describe_threshold(0.385144, None) == "0.385144"
    assert describe_threshold(0.385144, 0.44649) == "0.385144, which is P(supported) 0.446"
