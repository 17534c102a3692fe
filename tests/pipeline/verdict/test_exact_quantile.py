from collections.abc import Callable, Iterable
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.exact_quantile import (
    BINS,
    ScoreHistogram,
    ShareThreshold,
    count_bins,
    find_share_threshold,
    merge_histograms,
)

scores = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 0.01, 1.0, float("nan"), float("inf"), float("-inf")])
partitions = st.lists(st.lists(scores, max_size=40), min_size=1, max_size=5)
shares = st.integers(0, 1000).map(lambda k: k / 1000) | st.floats(0, 1)


def count_parts(parts: list[list[float]]) -> Callable[[int, int], Iterable[ScoreHistogram]]:
    return lambda low, high: (count_bins(np.array(part), low, high) for part in parts)


@given(partitions, shares)
def test_the_threshold_equals_that_of_a_sort(parts: list[list[float]], share: float) -> None:
    flat = np.array([x for part in parts for x in part])
    ordered = np.sort(flat[~np.isnan(flat)])
    threshold = find_share_threshold(count_parts(parts), share)
    if not len(ordered):
        assert threshold is None
        return
    rank = floor(Fraction(repr(share)) * len(ordered))
    assert (
        threshold is not None
        and threshold.count == len(ordered)
        and threshold.flagged == (ordered <= threshold.value).sum() >= rank
    )
    if rank:
        assert threshold.value == ordered[rank - 1]
        assert (ordered < threshold.value).sum() < rank  # scores flagged beyond the share tie with the last one
    else:
        assert threshold.flagged == np.isneginf(ordered).sum()  # no number is smaller


@pytest.mark.parametrize(
    ("share", "flagged"), [(0.0, 0), (0.07, 7), (0.29, 29), (0.57, 57), (0.999, 99), (1.0, 100), (0.005, 0)]
)
def test_a_share_counts_as_written(share: float, flagged: int) -> None:
    """In floats 0.07 * 100 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996."""
    threshold = find_share_threshold(count_parts([list(np.random.default_rng(1).permutation(100).astype(float))]), share)
    assert threshold is not None and threshold.flagged == flagged
    assert threshold == find_share_threshold(count_parts([[float(i) for i in range(100)]]), np.float64(share))


def test_an_outlier_does_not_change_the_precision() -> None:
    """Under `shift` all scores but the outlier differ by less than one part in a million."""
    rng = np.random.default_rng(2)
    crowd = 1e6 + rng.normal(size=300_000)
    threshold = find_share_threshold(
        lambda low, high: [count_bins(part, low, high) for part in (crowd[:7], crowd[7:], np.array([0.01]))], 0.05
    )
    assert threshold == ShareThreshold(float(np.sort(crowd)[14_998]), 15_000, 300_001)


def test_a_pass_has_at_most_the_number_of_bins() -> None:
    numbers = np.random.default_rng(3).normal(size=400_000)
    histograms = []

    def count_range(low: int, high: int) -> list[ScoreHistogram]:
        histograms.append(count_bins(numbers, low, high))
        assert len(merge_histograms([histograms[-1], histograms[-1]]).bin_number) <= BINS
        return histograms[-1:]

    threshold = find_share_threshold(count_range, 0.5)
    assert threshold is not None and threshold.value == np.sort(numbers)[199_999] and len(histograms) <= 4
