"""Weights of the members in the ensemble, by logistic regression on their z-scores."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def fit_weights(z: Floats, good: Bools) -> Floats:
    """Weights >= 0 that sum to 1; a member that speaks against the labels gets 0.

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
    return weights / total if total > 0 else np.full(size, 1 / size)
