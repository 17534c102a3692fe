import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.calibration.probability import (
    MIN_ISOTONIC_ROWS,
    compute_calibration_error,
    fit_probability,
    predict_probabilities,
)
from ragassay.pipeline.calibration.weights import fit_member_weights
from ragassay.schemas.calibration import ProbabilityMap


@pytest.mark.parametrize(("rows", "kind"), [(MIN_ISOTONIC_ROWS - 1, "platt"), (4000, "isotonic")])
def test_probabilities_approximate_the_true_probabilities(rows: int, kind: str) -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(2, 3, rows)
    probability = 1 / (1 + np.exp(-(0.8 * scores - 1)))
    supported = rng.random(rows) < probability
    fitted = fit_probability(scores, supported)
    assert fitted.kind == kind
    predicted = predict_probabilities(fitted, scores)
    assert np.abs(predicted - probability).mean() < 0.05
    assert compute_calibration_error(predicted, supported) < 0.05 < compute_calibration_error(np.full(rows, 0.99), supported)


@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.sampled_from([1e-3, 1.0, 1e4]))
def test_the_map_never_decreases_and_stays_between_0_and_1(seed: int, size: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    scores, supported = rng.normal(size=size) * scale, rng.random(size) < 0.5
    supported[:2] = True, False
    for fitted in (fit_probability(scores, supported), ProbabilityMap("isotonic", x=(-1.0, 0.0, 2.0), y=(0.1, 0.1, 0.8))):
        predicted = predict_probabilities(fitted, np.sort(np.append(scores, [-1e9, 1e9])))
        assert (np.diff(predicted) >= 0).all() and predicted.min() >= 0 and predicted.max() <= 1


def test_scores_that_contradict_the_labels_give_the_base_rate() -> None:
    supported = np.array([True, True, False, False] * 10)
    scores = np.array([0.0, 0.1, 0.9, 1.0] * 10)
    assert predict_probabilities(fit_probability(scores, supported), scores) == pytest.approx(np.full(40, 0.5))


def test_a_missing_score_has_no_probability() -> None:
    assert np.isnan(predict_probabilities(ProbabilityMap("platt", slope=1.0), np.array([np.nan]))).all()


def test_the_calibration_error_equals_that_computed_by_hand() -> None:
    # two bins: p = 0.2 with 1 of 4 correct, p = 0.8 with 2 of 4 correct
    probability = np.repeat([0.2, 0.8], 4)
    supported = np.array([True, False, False, False, True, True, False, False])
    assert compute_calibration_error(probability, supported) == pytest.approx(0.5 * 0.05 + 0.5 * 0.3)
    assert compute_calibration_error(probability, np.array([False] * 4 + [True] * 4)) == pytest.approx(0.2)


def test_the_informative_member_gets_the_weight() -> None:
    rng = np.random.default_rng(5)
    supported = rng.random(500) < 0.5
    informative, noise = rng.normal(supported * 2.0, 1), rng.normal(size=500)
    weights = fit_member_weights(np.stack([informative, noise, -informative], axis=1), supported)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert weights[0] > 0.8 and weights[2] == pytest.approx(0.01, abs=1e-3)
    assert fit_member_weights(np.stack([-informative, -informative], axis=1), supported) == pytest.approx([0.5, 0.5])
