"""Fit the weights of the ensemble's members by logistic regression on their z-scores."""

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats

MIN_WEIGHT = 0.01
"""Minimum weight of a member. A sentence for which only this member has a value must still get a score."""


def fit_member_weights(z: Floats, supported: Bools) -> Floats:
    """Fit weights that sum to 1. A member without information, or that contradicts the labels, gets about MIN_WEIGHT.

    Args:
        z: Array (responses, members): each member's smallest z-score of the response, because one unsupported sentence makes
            a response wrong.
        supported: Label of each response; both classes must occur.

    Returns:
        A weight per member; equal weights if no member agrees with the labels.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.maximum(LogisticRegression(class_weight="balanced").fit(z, supported).coef_[0], 0.0)
    total = float(weights.sum())
    size = z.shape[1]
    if total == 0:
        return np.full(size, 1 / size)
    kept = np.maximum(weights / total, MIN_WEIGHT)
    return np.asarray(kept / kept.sum())
