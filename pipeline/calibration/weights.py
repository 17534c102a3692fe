"""Weights of the members in the ensemble, by logistic regression on their z-scores."""

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats

LEAST = 0.01
"""Share that every member keeps at least: a sentence that only this member can judge must not be left without a score."""


def fit_weights(z: Floats, good: Bools) -> Floats:
    """Weights that sum to 1; a member that says nothing, or speaks against the labels, gets LEAST of them.

    Args:
        z: Array (responses, members): each member's smallest z-score of the response, since one unsupported sentence
            makes a response wrong.
        good: Whether each response is correct; both classes are there.

    Returns:
        One weight a member; equal weights where no member speaks for the labels.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.maximum(LogisticRegression(class_weight="balanced").fit(z, good).coef_[0], 0.0)
    total = float(weights.sum())
    size = z.shape[1]
    if total == 0:
        return np.full(size, 1 / size)
    kept = np.maximum(weights / total, LEAST)
    return np.asarray(kept / kept.sum())
