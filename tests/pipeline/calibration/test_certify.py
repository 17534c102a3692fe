"""Certified precision holds: checked by drawing labelled sets from a law whose precision is known."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from ragassay.pipeline.calibration.certify import certify, lower_bound, rows_needed

DELTA = 0.1
TARGET = 0.85
SHARE_GOOD = 0.6


def true_precision(tau: float) -> float:
    """P(good | score >= tau) where scores are N(1.2, 1) for good rows and N(0, 1) for others."""
    good, bad = SHARE_GOOD * ndtr(1.2 - tau), (1 - SHARE_GOOD) * ndtr(-tau)
    return float(good / (good + bad))


TRIALS = 300


def draw(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    good = rng.random(size) < SHARE_GOOD
    return rng.normal(np.where(good, 1.2, 0.0), 1), good


@pytest.mark.parametrize("size", [100, 400])
def test_the_certificate_is_wrong_no_more_often_than_delta(size: int) -> None:
    rng = np.random.default_rng(7)
    wrong = given = 0
    for _ in range(TRIALS):
        tau, certificate = certify(draw(rng, size), draw(rng, size), TARGET, DELTA)
        if tau is not None:
            given += 1
            wrong += true_precision(tau) < TARGET
            assert certificate.bound >= TARGET and certificate.selected >= rows_needed(TARGET, DELTA)
    assert binomtest(wrong, TRIALS, DELTA, alternative="greater").pvalue > 0.01, wrong
    assert given > (TRIALS / 2 if size == 400 else TRIALS / 20), given  # and it is not silence that makes it right


def test_a_precision_that_no_threshold_has_is_certified_as_seldom_as_delta() -> None:
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(TRIALS):
        halves = [(rng.normal(size=150), rng.random(150) < TARGET - 1e-9) for _ in range(2)]
        wrong += certify(halves[0], halves[1], TARGET, DELTA)[0] is not None
    assert binomtest(wrong, TRIALS, DELTA, alternative="greater").pvalue > 0.01, wrong


def test_too_few_rows_certify_nothing() -> None:
    few = rows_needed(0.95, 0.05) - 1
    perfect = (np.arange(few, dtype=float), np.ones(few, dtype=bool))
    tau, certificate = certify(perfect, perfect, 0.95, 0.05)
    assert tau is None and certificate.selected == certificate.correct == few and certificate.bound < 0.95
    enough = (np.arange(few + 1, dtype=float), np.ones(few + 1, dtype=bool))
    assert certify(enough, enough, 0.95, 0.05)[0] == 0.0


def test_the_bound_is_clopper_and_pearsons() -> None:
    for correct, selected in [(0, 0), (0, 5), (5, 5), (37, 40), (50, 100)]:
        expected = (
            binomtest(correct, selected).proportion_ci(0.9, "exact").low if selected else 0.0
        )  # two-sided 90 %: 5 % below
        assert lower_bound(correct, selected, 0.05) == pytest.approx(expected)
    assert rows_needed(0.95, 0.05) == 59
