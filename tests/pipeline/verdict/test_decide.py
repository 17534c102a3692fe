"""From members' values to verdicts, compared with values computed by hand from the paper's formulas (eq. 4 to 10)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy, aggregate_scores, make_positive
from ragassay.pipeline.verdict.ensemble import NormalizationFit, combine_members, find_lowest_score, fit_member
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.pipeline.verdict.rule import decide_verdicts
from tests.raises import raises

BY_HAND = {  # responses with the sentence scores (1, 2, 4) and (0.5), and one without a sentence
    Mean.HARMONIC: [3 / (1 + 1 / 2 + 1 / 4), 0.5],
    Mean.ARITHMETIC: [7 / 3, 0.5],
    Mean.GEOMETRIC: [2.0, 0.5],
    Mean.MIN: [1.0, 0.5],
    Mean.MAX: [4.0, 0.5],
}


@pytest.mark.parametrize("mean", Mean)
def test_means_equal_those_computed_by_hand(mean: Mean) -> None:
    scores = aggregate_scores(np.array([1.0, 2.0, 4.0, 0.5]), np.array([3, 0, 1]), mean)
    assert scores[[0, 2]] == pytest.approx(BY_HAND[mean])
    assert math.isnan(scores[1])


@given(st.lists(st.lists(st.floats(0.01, 100), max_size=6), max_size=8))
def test_means_are_ordered_and_independent_of_other_responses(responses: list[list[float]]) -> None:
    flat = np.array([score for response in responses for score in response])
    counts = np.array([len(response) for response in responses], dtype=np.int64)
    all_means = {mean: aggregate_scores(flat, counts, mean) for mean in Mean}
    for i, sentences in enumerate(responses):
        if not sentences:
            assert all(math.isnan(v[i]) for v in all_means.values())
            continue
        low, har, geo, ari, high = (
            all_means[m][i] for m in (Mean.MIN, Mean.HARMONIC, Mean.GEOMETRIC, Mean.ARITHMETIC, Mean.MAX)
        )
        slack = 1e-9 * high
        assert low <= har + slack <= geo + 2 * slack <= ari + 3 * slack <= high + 4 * slack
        alone = aggregate_scores(np.array(sentences), np.array([len(sentences)]), Mean.HARMONIC)
        assert har == pytest.approx(alone[0])


def test_z_scores_are_averaged_over_members() -> None:
    fits = {
        "a": NormalizationFit(mu=0.5, sigma=0.25, count=4, low=0.0),
        "b": NormalizationFit(mu=-2.0, sigma=2.0, count=4, low=-4.0),
    }
    scores = combine_members({"a": np.array([1.0, 0.5]), "b": np.array([-4.0, 0.0])}, fits)
    assert scores.tolist() == [(2.0 - 1.0) / 2, (0.0 + 1.0) / 2]
    assert find_lowest_score(fits, ["a", "b"]) == (-2.0 - 1.0) / 2


def test_the_fit_is_mean_and_population_deviation() -> None:
    fit = fit_member("a", compute_moments([1.0, 3.0]))
    assert (fit.mu, fit.sigma, fit.low, fit.count) == (2.0, 1.0, 1.0, 2)


@pytest.mark.parametrize("values", [[], [0.7], [0.1 + 0.2] * 7])
def test_a_fit_of_equal_values_names_the_member(values: list[float]) -> None:
    with raises("fit.no-sentence", "fit.no-deviation", member="smollm2"):
        fit_member("smollm2", compute_moments(values))


def test_positivity_policies_equal_those_computed_by_hand() -> None:
    z = np.array([-1.0, 0.0, 2.0])
    args = {"epsilon": 0.01, "low": -0.5}
    assert make_positive(z, PositivityPolicy.CLIP, **args).tolist() == [0.01, 0.01, 2.0]
    assert make_positive(z, PositivityPolicy.SHIFT, **args) == pytest.approx([0.01, 0.51, 2.51])
    assert make_positive(z, PositivityPolicy.CDF, **args) == pytest.approx([0.15865525, 0.5, 0.97724987])
    assert make_positive(z, PositivityPolicy.NONE, **args).tolist() == z.tolist()


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=20))
def test_policies_keep_the_order_and_return_positive_values(values: list[float]) -> None:
    z = np.sort(np.array(values))
    for policy in (PositivityPolicy.CLIP, PositivityPolicy.CDF, PositivityPolicy.SHIFT):
        positive = make_positive(z, policy, epsilon=0.01, low=-3.0)
        assert (positive > 0).all() and (np.diff(positive) >= 0).all()


def test_only_a_score_above_the_threshold_is_supported() -> None:
    assert decide_verdicts(np.array([0.4, 0.5, 0.6, np.nan]), 0.5).to_pylist() == [
        "hallucinated",
        "hallucinated",
        "supported",
        None,
    ]
