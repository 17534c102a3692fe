import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.calibration.probability import ISOTONIC_ROWS, calibration_error, fit_probability, probabilities
from ragassay.pipeline.calibration.weights import fit_weights
from ragassay.schemas.calibration import ProbabilityMap


@pytest.mark.parametrize(("rows", "kind"), [(ISOTONIC_ROWS - 1, "platt"), (4000, "isotonic")])
def test_probabilities_come_near_the_law_that_drew_the_labels(rows: int, kind: str) -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(2, 3, rows)
    law = 1 / (1 + np.exp(-(0.8 * scores - 1)))
    good = rng.random(rows) < law
    fitted = fit_probability(scores, good)
    assert fitted.kind == kind
    got = probabilities(fitted, scores)
    assert np.abs(got - law).mean() < 0.05
    assert calibration_error(got, good) < 0.05 < calibration_error(np.full(rows, 0.99), good)


@given(st.integers(0, 2**32 - 1), st.integers(4, 60), st.sampled_from([1e-3, 1.0, 1e4]))
def test_the_map_never_falls_and_stays_between_0_and_1(seed: int, size: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    scores, good = rng.normal(size=size) * scale, rng.random(size) < 0.5
    good[:2] = True, False
    for fitted in (fit_probability(scores, good), ProbabilityMap("isotonic", x=(-1.0, 0.0, 2.0), y=(0.1, 0.1, 0.8))):
        got = probabilities(fitted, np.sort(np.append(scores, [-1e9, 1e9])))
        assert (np.diff(got) >= 0).all() and got.min() >= 0 and got.max() <= 1


def test_scores_that_speak_against_the_labels_give_everyone_the_base_rate() -> None:
    good = np.array([True, True, False, False] * 10)
    scores = np.array([0.0, 0.1, 0.9, 1.0] * 10)
    assert probabilities(fit_probability(scores, good), scores) == pytest.approx(np.full(40, 0.5))


def test_no_score_has_no_probability() -> None:
    assert np.isnan(probabilities(ProbabilityMap("platt", slope=1.0), np.array([np.nan]))).all()


def test_calibration_error_by_hand() -> None:
    # two bins: p = 0.2 with 1 of 4 correct, p = 0.8 with 2 of 4 correct
    probability = np.repeat([0.2, 0.8], 4)
    good = np.array([True, False, False, False, True, True, False, False])
    assert calibration_error(probability, good) == pytest.approx(0.5 * 0.05 + 0.5 * 0.3)
    assert calibration_error(probability, np.array([False] * 4 + [True] * 4)) == pytest.approx(0.2)


def test_weights_find_the_member_that_sees() -> None:
    rng = np.random.default_rng(5)
    good = rng.random(500) < 0.5
    sees, noise = rng.normal(good * 2.0, 1), rng.normal(size=500)
    weights = fit_weights(np.stack([sees, noise, -sees], axis=1), good)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert weights[0] > 0.8 and weights[2] == pytest.approx(0.01, abs=1e-3)
    assert fit_weights(np.stack([-sees, -sees], axis=1), good) == pytest.approx([0.5, 0.5])
