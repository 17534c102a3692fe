import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from ragassay.pipeline.verdict.drift import kolmogorov_smirnov_distance, population_stability_index
from ragassay.pipeline.verdict.moments import compute_moments, merge_moments
from ragassay.schemas.stats import Moments

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=60)


@given(numbers, numbers)
def test_kolmogorov_smirnov_equals_that_of_scipy(a: list[float], b: list[float]) -> None:
    a, b = np.round(a, 0).tolist(), np.round(b, 0).tolist()  # integers below 100 have separate buckets
    distance = kolmogorov_smirnov_distance(compute_moments(a), compute_moments(b))
    assert distance == pytest.approx(ks_2samp(a, b).statistic, abs=1e-9)


@given(numbers, numbers)
@example([3.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.5, 0.25])
def test_distances_are_zero_for_equal_distributions_and_not_negative(a: list[float], b: list[float]) -> None:
    first, second = compute_moments(a), compute_moments(b)
    assert kolmogorov_smirnov_distance(first, first) == population_stability_index(first, first) == 0
    assert kolmogorov_smirnov_distance(first, second) == pytest.approx(kolmogorov_smirnov_distance(second, first))
    assert 0 <= kolmogorov_smirnov_distance(first, second) <= 1 and population_stability_index(first, second) >= 0


def test_psi_equals_that_computed_by_hand() -> None:
    history = compute_moments(np.repeat(np.arange(1, 11), 10))  # ten values, a tenth each
    current = compute_moments(np.repeat([1, 10], [70, 30]))
    # bins are the ten values; eight of them are empty in the current values and count as 0.0001
    expected = (0.7 - 0.1) * np.log(7) + (0.3 - 0.1) * np.log(3) + 8 * (1e-4 - 0.1) * np.log(1e-4 / 0.1)
    assert population_stability_index(current, history) == pytest.approx(expected)


@pytest.mark.parametrize("history", [[1.0] * 100, [0.5] * 30 + [1.0] * 70])
@pytest.mark.parametrize("current", [[0.2] * 100, [0.9] * 100, [2.0] * 100, [0.1, 0.9] * 50])
def test_values_outside_a_history_of_one_or_two_values_are_a_shift(history: list[float], current: list[float]) -> None:
    assert population_stability_index(compute_moments(current), compute_moments(history)) > 1
    assert population_stability_index(compute_moments(history), compute_moments(history)) == 0
    slightly = [*history[:-1], current[0]]
    assert population_stability_index(compute_moments(slightly), compute_moments(history)) < 0.1


def test_a_moved_distribution_is_a_shift_and_a_resampled_distribution_is_not() -> None:
    rng = np.random.default_rng(0)
    history = merge_moments(compute_moments(rng.normal(size=2000)) for _ in range(5))
    assert population_stability_index(compute_moments(rng.normal(size=2000)), history) < 0.02
    assert population_stability_index(compute_moments(rng.normal(0.7, 1, 2000)), history) > 0.25


def test_empty_distributions_are_refused() -> None:
    for pair in ((Moments(), compute_moments([1.0])), (compute_moments([1.0]), Moments())):
        with pytest.raises(ValueError, match="no numbers"):
            kolmogorov_smirnov_distance(*pair)
        with pytest.raises(ValueError, match="no numbers"):
            population_stability_index(*pair)
