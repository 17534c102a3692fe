"""From response scores to the probability that a response is supported: Platt's sigmoid, or isotonic regression."""

import numpy as np
from scipy.special import expit

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.schemas.calibration import ProbabilityMap

ISOTONIC_ROWS = 1000
"""Isotonic regression overfits on fewer rows than this (Niculescu-Mizil and Caruana 2005), so Platt's two numbers do it."""

BINS = 10


def fit_probability(scores: Floats, good: Bools) -> ProbabilityMap:
    """Fit the map: isotonic from ISOTONIC_ROWS rows on, Platt's sigmoid (Platt 1999) below.

    Args:
        scores: Finite response scores.
        good: Whether each is correct; both classes are there.
    """
    if len(scores) >= ISOTONIC_ROWS:
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, good)
        return ProbabilityMap("isotonic", x=tuple(map(float, fitted.X_thresholds_)), y=tuple(map(float, fitted.y_thresholds_)))
    from sklearn.linear_model import LogisticRegression

    # Fitted on standardised scores, so that the solver's small penalty means the same on every scale.
    middle, width = float(scores.mean()), float(scores.std()) or 1.0
    model = LogisticRegression(C=1e6).fit(((scores - middle) / width)[:, None], good)
    slope = max(0.0, float(model.coef_[0, 0]) / width)  # a map that falls with the score would turn the verdicts round
    if slope == 0:
        rate = float(good.mean())
        return ProbabilityMap("platt", slope=0.0, intercept=float(np.log(rate / (1 - rate))))
    return ProbabilityMap("platt", slope=slope, intercept=float(model.intercept_[0]) - slope * middle)


def probabilities(fitted: ProbabilityMap, scores: Floats) -> Floats:
    """P(supported) of each response score, 0 to 1; NaN stays NaN."""
    if fitted.kind == "isotonic":
        return np.interp(scores, fitted.x, fitted.y)
    return np.asarray(expit(fitted.slope * scores + fitted.intercept))


def calibration_error(probability: Floats, good: Bools) -> float:
    """Expected calibration error: mean over BINS bins of equal size of |mean probability - share correct|, by rows.

        ECE = sum_b n_b / n * | mean_b(p) - mean_b(y) |     (Naeini et al. 2015; equal-mass bins)

    Rows of equal probability stay in one bin, so that the order of ties can't matter.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, probability, side="left")
    error = 0.0
    for b in np.unique(bins):
        mine = bins == b
        error += float(mine.mean()) * abs(float(probability[mine].mean()) - float(good[mine].mean()))
    return error
