"""The dynamic threshold: the paper's algorithm, to the bit, in whatever parts and whatever order of arrival."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.cascade.dynamic import WARM_UP_ROWS, ScoreTotal, scan, select_escalated, sum_scores

# From the smallest subnormal to the largest float32, and values that tie with their own mean.
SCORES = st.lists(
    st.one_of(st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 0.1, 1 / 3, 2.0**-149])),
    max_size=60,
)


def algorithm_1(scores: list[float]) -> list[bool]:
    """The paper's, one query after the other, in exact fractions: compare, then update."""
    found: list[bool] = []
    processed: list[Fraction] = []
    for i, score in enumerate(map(Fraction, scores), 1):
        found.append(i > WARM_UP_ROWS and score >= sum(processed, Fraction()) / len(processed))
        processed.append(score)
    return found


def float32(scores: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(scores, dtype=np.float32)


@given(SCORES)
def test_it_is_the_papers_algorithm(scores: list[float]) -> None:
    found = float32(scores)
    assert select_escalated(found).tolist() == algorithm_1(found.tolist())


@given(SCORES, st.lists(st.integers(0, 60), max_size=6), st.integers(0, 60))
def test_any_partitioning_gives_the_same(scores: list[float], cuts: list[int], history: int) -> None:
    found = float32(scores)
    whole = select_escalated(found)
    parts = np.split(found, sorted(min(cut, len(scores)) for cut in cuts))
    assert np.concatenate(scan(parts)).tolist() == whole.tolist()
    history = min(history, len(scores))
    assert select_escalated(found[history:], sum_scores(found[:history])).tolist() == whole[history:].tolist()


@given(SCORES, SCORES, SCORES, st.randoms())
def test_segments_add_in_any_way(a: list[float], b: list[float], c: list[float], random: object) -> None:
    x, y, z = map(sum_scores, map(float32, (a, b, c)))
    assert (x + y) + z == x + (y + z) == sum_scores(float32(a + b + c)) and ScoreTotal() + x == x == x + ScoreTotal()
    mixed = [*a, *b, *c]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert sum_scores(float32(mixed)) == x + y + z


def test_sums_that_doubles_lose_are_kept() -> None:
    """In doubles, 2^100 swallows what follows; the exact mean does not, and the last row lies on it."""
    scores = float32([2.0**100, -(2.0**100), 1.0, 1.0, 1.0, 0.6, 0.6])
    assert select_escalated(scores).tolist() == algorithm_1(scores.tolist()) == [False] * 5 + [True, True]
    assert sum_scores(scores) == ScoreTotal(7, int((3 + 2 * Fraction(float(np.float32(0.6)))) * 2**172))
