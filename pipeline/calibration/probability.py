"""Map scores of responses or sentences to the probability that they are supported: Platt's sigmoid, or isotonic regression."""

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.schemas.calibration import ProbabilityMap

MIN_ISOTONIC_ROWS = 1000
"""Isotonic regression overfits on fewer rows (Niculescu-Mizil and Caruana 2005), so Platt's sigmoid with two numbers is
used."""

BINS = 10


def fit_probability(scores: Floats, supported: Bools) -> ProbabilityMap:
    """Fit the map: isotonic for at least MIN_ISOTONIC_ROWS rows, Platt's sigmoid (Platt 1999) for fewer.

    Args:
        scores: Finite scores of responses or sentences.
        supported: Label of each; both classes must occur.
    """
    if len(scores) >= MIN_ISOTONIC_ROWS:
        from sklearn.isotonic import IsotonicRegression

        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, supported)
        return ProbabilityMap("isotonic", x=tuple(map(float, fitted.X_thresholds_)), y=tuple(map(float, fitted.y_thresholds_)))
    return fit_platt(scores, supported)


def fit_platt(scores: Floats, supported: Bools) -> ProbabilityMap:
    """Fit Platt's sigmoid, without the prior of his targets; see `fit_probability`."""
    from sklearn.linear_model import LogisticRegression

    # Scores are standardized, so that the solver's small penalty has the same effect on every scale.
    center, width = float(scores.mean()), float(scores.std()) or 1.0
    model = LogisticRegression(C=1e6).fit(((scores - center) / width)[:, None], supported)
    slope = max(0.0, float(model.coef_[0, 0]) / width)  # a decreasing map would contradict the verdicts
    if slope == 0:
        rate = float(supported.mean())
        return ProbabilityMap("platt", slope=0.0, intercept=float(np.log(rate / (1 - rate))))
    return ProbabilityMap("platt", slope=slope, intercept=float(model.intercept_[0]) - slope * center)


def predict_probabilities(fitted: ProbabilityMap, scores: Floats) -> Floats:
    """Return P(supported) for each score, 0 to 1; NaN for NaN."""
    if fitted.kind == "isotonic":
        return np.interp(scores, fitted.x, fitted.y)
    from scipy.special import expit

    return np.asarray(expit(fitted.slope * scores + fitted.intercept))


def predict_probability(fitted: ProbabilityMap | None, score: float | None) -> float | None:
    """Return P(supported) for one score; None without a map or a score."""
    return None if fitted is None or score is None else float(predict_probabilities(fitted, np.array(score)))


def compute_calibration_error(probability: Floats, supported: Bools) -> float:
    """Compute the expected calibration error: the mean of |mean probability - share correct| over BINS bins with equal
    numbers of rows.

        ECE = sum_b n_b / n * | mean_b(p) - mean_b(y) |     (Naeini et al. 2015; equal-mass bins)

    Rows of equal probability are in one bin, so that the order of ties has no effect.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, probability, side="left")
    error = 0.0
    for b in np.unique(bins):
        in_bin = bins == b
        error += float(in_bin.mean()) * abs(float(probability[in_bin].mean()) - float(supported[in_bin].mean()))
    return error
