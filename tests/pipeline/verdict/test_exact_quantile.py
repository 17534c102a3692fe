from collections.abc import Callable, Iterable
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.exact_quantile import CELLS, Cells, Cut, add_cells, cells_of, share_cut

scores = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 0.01, 1.0, float("nan"), float("inf"), float("-inf")])
partitions = st.lists(st.lists(scores, max_size=40), min_size=1, max_size=5)
shares = st.integers(0, 1000).map(lambda k: k / 1000) | st.floats(0, 1)


def look_at(parts: list[list[float]]) -> Callable[[int, int], Iterable[Cells]]:
    return lambda low, high: (cells_of(np.array(part), low, high) for part in parts)


@given(partitions, shares)
def test_it_is_the_number_of_a_sort(parts: list[list[float]], share: float) -> None:
    flat = np.array([x for part in parts for x in part])
    ordered = np.sort(flat[~np.isnan(flat)])
    cut = share_cut(look_at(parts), share)
    if not len(ordered):
        assert cut is None
        return
    rank = floor(Fraction(repr(share)) * len(ordered))
    assert cut is not None and cut.count == len(ordered) and cut.flagged == (ordered <= cut.value).sum() >= rank
    if rank:
        assert cut.value == ordered[rank - 1]
        assert (ordered < cut.value).sum() < rank  # what is flagged beyond the share ties with the last of it
    else:
        assert cut.flagged == np.isneginf(ordered).sum()  # no number is less than that


@pytest.mark.parametrize(
    ("share", "flagged"), [(0.0, 0), (0.07, 7), (0.29, 29), (0.57, 57), (0.999, 99), (1.0, 100), (0.005, 0)]
)
def test_a_share_counts_as_it_is_written(share: float, flagged: int) -> None:
    """In floats 0.07 * 100 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996."""
    cut = share_cut(look_at([list(np.random.default_rng(1).permutation(100).astype(float))]), share)
    assert cut is not None and cut.flagged == flagged
    assert cut == share_cut(look_at([[float(i) for i in range(100)]]), np.float64(share))


def test_one_outlier_among_many_does_not_blur_it() -> None:
    """Under `shift` all but the outlier lie within a part in a million of each other."""
    rng = np.random.default_rng(2)
    crowd = 1e6 + rng.normal(size=300_000)
    cut = share_cut(lambda low, high: [cells_of(part, low, high) for part in (crowd[:7], crowd[7:], np.array([0.01]))], 0.05)
    assert cut == Cut(float(np.sort(crowd)[14_998]), 15_000, 300_001)


def test_no_look_holds_more_than_its_cells() -> None:
    numbers = np.random.default_rng(3).normal(size=400_000)
    looks = []

    def look(low: int, high: int) -> list[Cells]:
        looks.append(cells_of(numbers, low, high))
        assert len(add_cells([looks[-1], looks[-1]]).place) <= CELLS
        return looks[-1:]

    cut = share_cut(look, 0.5)
    assert cut is not None and cut.value == np.sort(numbers)[199_999] and len(looks) <= 4
