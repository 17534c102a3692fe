"""Decide the verdict: a response is supported if its score is above the threshold, s_i > tau, else hallucinated."""

import numpy as np
import pyarrow as pa

from ragassay.pipeline.arrays import Floats
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED


def decide_verdicts(scores: Floats, threshold: float | Floats) -> pa.Array:
    """Decide the verdict of each response.

    Args:
        scores: A score per response; NaN if it has none.
        threshold: tau, or a threshold per response.

    Returns:
        String array: supported if score > tau, else hallucinated; null for a response without a score.
    """
    verdicts = np.where(scores > threshold, SUPPORTED, HALLUCINATED)
    return pa.array(verdicts.astype(object), type=pa.string(), mask=np.isnan(scores))
