import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from ragassay.pipeline.verdict.drift import kolmogorov_smirnov, population_stability
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.schemas.stats import Moments

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=60)


@given(numbers, numbers)
def test_kolmogorov_smirnov_is_scipys_up_to_the_width_of_a_bucket(a: list[float], b: list[float]) -> None:
    a, b = np.round(a, 0).tolist(), np.round(b, 0).tolist()  # whole numbers below 100 have buckets of their own
    got = kolmogorov_smirnov(moments_of(a), moments_of(b))
    assert got == pytest.approx(ks_2samp(a, b).statistic, abs=1e-9)


@given(numbers, numbers)
@example([3.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.5, 0.25])
def test_distances_are_zero_for_equals_and_symmetric_in_kind(a: list[float], b: list[float]) -> None:
    one, other = moments_of(a), moments_of(b)
    assert kolmogorov_smirnov(one, one) == population_stability(one, one) == 0
    assert kolmogorov_smirnov(one, other) == pytest.approx(kolmogorov_smirnov(other, one))
    assert 0 <= kolmogorov_smirnov(one, other) <= 1 and population_stability(one, other) >= 0


def test_psi_by_hand() -> None:
    history = moments_of(np.repeat(np.arange(1, 11), 10))  # ten values, a tenth each
    now = moments_of(np.repeat([1, 10], [70, 30]))
    # bins are the ten values; eight of them are empty tonight and count as 0.0001
    expected = (0.7 - 0.1) * np.log(7) + (0.3 - 0.1) * np.log(3) + 8 * (1e-4 - 0.1) * np.log(1e-4 / 0.1)
    assert population_stability(now, history) == pytest.approx(expected)


@pytest.mark.parametrize("history", [[1.0] * 100, [0.5] * 30 + [1.0] * 70])
@pytest.mark.parametrize("now", [[0.2] * 100, [0.9] * 100, [2.0] * 100, [0.1, 0.9] * 50])
def test_a_history_of_one_or_two_values_and_a_night_elsewhere(history: list[float], now: list[float]) -> None:
    assert population_stability(moments_of(now), moments_of(history)) > 1
    assert population_stability(moments_of(history), moments_of(history)) == 0
    slightly = [*history[:-1], now[0]]
    assert population_stability(moments_of(slightly), moments_of(history)) < 0.1


def test_a_moved_distribution_is_a_shift_and_a_resampled_one_is_not() -> None:
    rng = np.random.default_rng(0)
    history = merge(moments_of(rng.normal(size=2000)) for _ in range(5))
    assert population_stability(moments_of(rng.normal(size=2000)), history) < 0.02
    assert population_stability(moments_of(rng.normal(0.7, 1, 2000)), history) > 0.25


def test_nothing_can_be_compared_with_nothing() -> None:
    for pair in ((Moments(), moments_of([1.0])), (moments_of([1.0]), Moments())):
        with pytest.raises(ValueError, match="no numbers"):
            kolmogorov_smirnov(*pair)
        with pytest.raises(ValueError, match="no numbers"):
            population_stability(*pair)
