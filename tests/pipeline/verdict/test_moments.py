import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.moments import merge, moments_of, quantile
from ragassay.schemas.stats import Moments

numbers = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=60)
groups = st.lists(st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=30), min_size=1, max_size=6)


def close(a: Moments, b: Moments) -> bool:
    scale = max(1.0, abs(a.high or 0), abs(a.low or 0))
    return (
        (a.count, a.low, a.high, a.buckets) == (b.count, b.low, b.high, b.buckets)
        and abs(a.mean - b.mean) <= 1e-9 * scale
        and abs(a.m2 - b.m2) <= 1e-9 * scale * scale * max(1, a.count)
    )


@given(groups)
def test_merged_equals_one_pass(parts: list[list[float]]) -> None:
    everything = [x for part in parts for x in part]
    assert close(merge(moments_of(p) for p in parts), moments_of(everything))


@given(groups)
def test_one_pass_equals_numpy(parts: list[list[float]]) -> None:
    everything = np.array([x for part in parts for x in part])
    if len(everything):
        merged = merge(moments_of(p) for p in parts)
        scale = max(1.0, float(np.abs(everything).max()))
        assert merged.mean == pytest.approx(everything.mean(), abs=1e-9 * scale)
        assert merged.sigma == pytest.approx(everything.std(), abs=1e-6 * scale)


@given(groups, groups, groups)
def test_merging_is_associative_and_order_free(a: list[list[float]], b: list[list[float]], c: list[list[float]]) -> None:
    x, y, z = (merge(moments_of(p) for p in parts) for parts in (a, b, c))
    assert close(merge([merge([x, y]), z]), merge([x, merge([y, z])]))
    assert close(merge([x, y, z]), merge([z, x, y]))


@given(numbers)
def test_sketch_does_not_depend_on_order(values: list[float]) -> None:
    assert moments_of(values).buckets == moments_of(values[::-1]).buckets


@given(numbers, st.floats(0, 1))
def test_quantile_is_exact_within_one_percent_above(values: list[float], q: float) -> None:
    exact = float(np.quantile(values, q, method="inverted_cdf"))
    estimate = quantile(moments_of(values), q)
    assert exact - 1e-9 <= estimate <= exact + abs(exact) * 0.0101 + 1e-9
    assert sum(v <= estimate for v in values) >= q * len(values)


def test_of_nothing() -> None:
    assert merge([]) == Moments() == moments_of([])
    assert Moments().sigma == 0
    with pytest.raises(ValueError, match="no numbers"):
        quantile(Moments(), 0.5)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        moments_of([1.0, float("nan")])
