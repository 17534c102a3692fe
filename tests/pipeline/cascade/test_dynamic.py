"""The dynamic threshold equals the paper's algorithm exactly, for any partitions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.cascade.dynamic import WARM_UP_ROWS, ScoreTotal, select_escalated, sum_scores

# From the smallest subnormal to the largest float32, and values that equal their mean.
SCORES = st.lists(
    st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 0.1, 1 / 3, 2.0**-149])),
    max_size=60,
)


def algorithm_1(scores: list[float]) -> list[bool]:
    """Run Algorithm 1 of the paper with exact fractions."""
    is_escalated: list[bool] = []
    processed: list[Fraction] = []
    for i, score in enumerate(map(Fraction, scores), 1):
        is_escalated.append(i > WARM_UP_ROWS and score >= sum(processed, Fraction()) / len(processed))
        processed.append(score)
    return is_escalated


def float32(scores: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(scores, dtype=np.float32)


@given(SCORES)
def test_escalated_rows_are_those_of_the_papers_algorithm(scores: list[float]) -> None:
    array = float32(scores)
    assert select_escalated(array).tolist() == algorithm_1(array.tolist())


@given(SCORES, st.lists(st.integers(0, 60), max_size=6))
def test_partitions_do_not_change_the_escalated_rows(scores: list[float], cuts: list[int]) -> None:
    array = float32(scores)
    earlier, is_escalated = ScoreTotal(), []
    for part in np.split(array, sorted(min(cut, len(scores)) for cut in cuts)):
        is_escalated += select_escalated(part, earlier).tolist()
        earlier += sum_scores(part)
    assert is_escalated == select_escalated(array).tolist()


@given(SCORES, SCORES, SCORES, st.randoms())
def test_totals_add_in_any_order(a: list[float], b: list[float], c: list[float], random: object) -> None:
    x, y, z = map(sum_scores, map(float32, (a, b, c)))
    assert (x + y) + z == x + (y + z) == sum_scores(float32(a + b + c)) and ScoreTotal() + x == x == x + ScoreTotal()
    mixed = [*a, *b, *c]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert sum_scores(float32(mixed)) == x + y + z


def test_sums_are_exact_where_doubles_are_not() -> None:
    """In doubles, 2^100 absorbs the small scores. The last row equals the exact mean."""
    scores = float32([2.0**100, -(2.0**100), 1.0, 1.0, 1.0, 0.6, 0.6])
    assert select_escalated(scores).tolist() == algorithm_1(scores.tolist()) == [False] * 5 + [True, True]
    assert sum_scores(scores) == ScoreTotal(7, int((3 + 2 * Fraction(float(np.float32(0.6)))) * 2**172))
