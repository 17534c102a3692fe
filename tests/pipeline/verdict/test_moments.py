import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.moments import compute_moments, estimate_quantile, merge_moments
from ragassay.schemas.stats import Moments

numbers = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=60)
groups = st.lists(st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=30), min_size=1, max_size=6)


def are_close(a: Moments, b: Moments) -> bool:
    scale = max(1.0, abs(a.high or 0), abs(a.low or 0))
    return (
        (a.count, a.low, a.high, a.buckets) == (b.count, b.low, b.high, b.buckets)
        and abs(a.mean - b.mean) <= 1e-9 * scale
        and abs(a.m2 - b.m2) <= 1e-9 * scale * scale * max(1, a.count)
    )


@given(groups)
def test_merged_moments_equal_those_of_one_pass(parts: list[list[float]]) -> None:
    values = [x for part in parts for x in part]
    assert are_close(merge_moments(compute_moments(p) for p in parts), compute_moments(values))


@given(groups)
def test_moments_equal_those_of_numpy(parts: list[list[float]]) -> None:
    values = np.array([x for part in parts for x in part])
    if len(values):
        merged = merge_moments(compute_moments(p) for p in parts)
        scale = max(1.0, float(np.abs(values).max()))
        assert merged.mean == pytest.approx(values.mean(), abs=1e-9 * scale)
        assert merged.sigma == pytest.approx(values.std(), abs=1e-6 * scale)


@given(groups, groups, groups)
def test_merging_is_associative_and_commutative(a: list[list[float]], b: list[list[float]], c: list[list[float]]) -> None:
    x, y, z = (merge_moments(compute_moments(p) for p in parts) for parts in (a, b, c))
    assert are_close(merge_moments([merge_moments([x, y]), z]), merge_moments([x, merge_moments([y, z])]))
    assert are_close(merge_moments([x, y, z]), merge_moments([z, x, y]))


@given(numbers)
def test_the_sketch_does_not_depend_on_the_order(values: list[float]) -> None:
    assert compute_moments(values).buckets == compute_moments(values[::-1]).buckets


@given(numbers, st.floats(0, 1))
def test_a_quantile_is_at_most_one_percent_too_high(values: list[float], q: float) -> None:
    exact = float(np.quantile(values, q, method="inverted_cdf"))
    estimate = estimate_quantile(compute_moments(values), q)
    assert exact - 1e-9 <= estimate <= exact + abs(exact) * 0.0101 + 1e-9
    assert sum(v <= estimate for v in values) >= q * len(values)


def test_moments_of_no_values() -> None:
    assert merge_moments([]) == Moments() == compute_moments([])
    assert Moments().sigma == 0
    with pytest.raises(ValueError, match="no numbers"):
        estimate_quantile(Moments(), 0.5)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        compute_moments([1.0, float("nan")])
