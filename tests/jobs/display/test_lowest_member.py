"""The main reason of a flag: the member with the lowest weighted z-score."""

from math import log
from typing import Any

import pytest

from ragassay.jobs.display.lowest_member import describe_lowest_member
from ragassay.schemas.manifest import MemberFit

FITS = {"facts": MemberFit(1.0, 2.0, 9, -5.0, "log_odds"), "novelty": MemberFit(0.8, 0.1, 9, 0.0, "score")}


def make_members(p_yes: float, novelty: float | None) -> list[dict[str, Any]]:
    return [
        {"name": "facts", "sentence_scores": [0.0], "log_p_yes": [log(p_yes)], "log_p_no": [log(1 - p_yes)]},
        {"name": "novelty", "sentence_scores": [novelty], "log_p_yes": None, "log_p_no": None},
        {"name": "outside", "sentence_scores": [-9.0], "log_p_yes": None, "log_p_no": None},
    ]


@pytest.mark.parametrize(
    ("p_yes", "novelty", "weights", "expected"),
    [
        (0.08, 0.7, None, "facts: P(yes) 0.08"),  # a new word counts less than the verifier
        (0.08, 0.7, {"facts": 0.1, "novelty": 0.9}, "novelty: 0.70, on average 0.80"),
        (0.9, 0.5, None, "novelty: 0.50, on average 0.80"),
        (0.08, None, None, "facts: P(yes) 0.08"),
        (0.9, 0.9, None, None),
        (0.9, None, {"facts": 0.0, "novelty": 1.0}, None),
    ],
)
def test_the_cause_is_the_member_with_the_lowest_weighted_z_score(
    p_yes: float, novelty: float | None, weights: dict[str, float] | None, expected: str | None
) -> None:
    assert describe_lowest_member(make_members(p_yes, novelty), 0, FITS, weights) == expected
