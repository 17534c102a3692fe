"""Decide: a response is supported if its score is above the threshold, s_i > tau; else it is hallucinated."""

import numpy as np
import pyarrow as pa

from ragassay.pipeline.arrays import Floats
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED


def verdicts(scores: Floats, threshold: float | Floats) -> pa.Array:
    """Verdict a response.

    Args:
        scores: One score a response, NaN where there is none.
        threshold: tau, or one a response.

    Returns:
        String array: supported where score > tau, hallucinated where not, null where there is no score.
    """
    words = np.where(scores > threshold, SUPPORTED, HALLUCINATED)
    return pa.array(words.astype(object), type=pa.string(), mask=np.isnan(scores))
