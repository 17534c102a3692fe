"""Certified precision holds: tested with labeled sets from a distribution of known precision."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from ragassay.pipeline.calibration.certify import certify_threshold, clopper_pearson_lower_bound, min_rows_to_certify

DELTA = 0.1
TARGET = 0.85
SHARE_SUPPORTED = 0.6


def true_precision(tau: float) -> float:
    """Return P(supported | score >= tau): scores are N(1.2, 1) for supported rows and N(0, 1) for others."""
    supported, other = SHARE_SUPPORTED * ndtr(1.2 - tau), (1 - SHARE_SUPPORTED) * ndtr(-tau)
    return float(supported / (supported + other))


TRIALS = 300


def draw(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    supported = rng.random(size) < SHARE_SUPPORTED
    return rng.normal(np.where(supported, 1.2, 0.0), 1), supported


@pytest.mark.parametrize("size", [100, 400])
def test_a_certificate_is_wrong_at_most_as_often_as_delta(size: int) -> None:
    rng = np.random.default_rng(7)
    wrong = certified = 0
    for _ in range(TRIALS):
        tau, certificate = certify_threshold(draw(rng, size), draw(rng, size), TARGET, DELTA)
        if tau is not None:
            certified += 1
            wrong += true_precision(tau) < TARGET
            assert certificate.bound >= TARGET and certificate.selected >= min_rows_to_certify(TARGET, DELTA)
    assert binomtest(wrong, TRIALS, DELTA, alternative="greater").pvalue > 0.01, wrong
    assert certified > (TRIALS / 2 if size == 400 else TRIALS / 20), certified  # certificates are not just rare


def test_a_precision_that_no_threshold_reaches_is_certified_at_most_as_often_as_delta() -> None:
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(TRIALS):
        halves = [(rng.normal(size=150), rng.random(150) < TARGET - 1e-9) for _ in range(2)]
        wrong += certify_threshold(halves[0], halves[1], TARGET, DELTA)[0] is not None
    assert binomtest(wrong, TRIALS, DELTA, alternative="greater").pvalue > 0.01, wrong


def test_too_few_rows_certify_nothing() -> None:
    few = min_rows_to_certify(0.95, 0.05) - 1
    perfect = (np.arange(few, dtype=float), np.ones(few, dtype=bool))
    tau, certificate = certify_threshold(perfect, perfect, 0.95, 0.05)
    assert tau is None and certificate.selected == certificate.correct == few and certificate.bound < 0.95
    enough = (np.arange(few + 1, dtype=float), np.ones(few + 1, dtype=bool))
    assert certify_threshold(enough, enough, 0.95, 0.05)[0] == 0.0


def test_the_bound_equals_that_of_scipy() -> None:
    for correct, selected in [(0, 0), (0, 5), (5, 5), (37, 40), (50, 100)]:
        expected = (
            binomtest(correct, selected).proportion_ci(0.9, "exact").low if selected else 0.0
        )  # two-sided 90 %: 5 % below
        assert clopper_pearson_lower_bound(correct, selected, 0.05) == pytest.approx(expected)
    assert min_rows_to_certify(0.95, 0.05) == 59
