"""Measure the distance of two distributions from their mergeable sketches alone (buckets 1 % wide, see `moments`)."""

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.schemas.stats import Moments

PSI_BINS = 10
PSI_FLOOR = 1e-4
"""Share of an empty bin, so that the logarithm stays finite."""


def population_stability_index(current: Moments, history: Moments) -> float:
    """Compute the population stability index over the deciles of the history, >= 0.

        PSI = sum_b (p_b - q_b) ln(p_b / q_b)

    p and q are the shares of the current values and of the history in each bin. By convention 0.1 is small, and 0.25 is a
    shift. A bucket with more than one decile is a separate bin, so that values below it count as a shift like values above it.

    Raises:
        ValueError: Either has no values.
    """
    p, q = (counts / counts.sum() for counts in _count_common_buckets(current, history))
    ends = np.searchsorted(np.cumsum(q), np.arange(1, PSI_BINS) / PSI_BINS - 1e-12)
    distinct_ends, deciles = np.unique(ends, return_counts=True)
    starts = np.unique([0, *distinct_ends[deciles > 1], *(distinct_ends[distinct_ends < len(q) - 1] + 1)])
    p, q = (np.maximum(np.add.reduceat(shares, starts), PSI_FLOOR) for shares in (p, q))
    return float(((p - q) * np.log(p / q)).sum())


def kolmogorov_smirnov_distance(current: Moments, history: Moments) -> float:
    """Compute the Kolmogorov-Smirnov distance: the largest difference of the distribution functions at bucket edges; 0 to 1.

    Raises:
        ValueError: Either has no values.
    """
    p, q = _count_common_buckets(current, history)
    # Summed counts are exact. Summed shares could exceed 1 by rounding errors.
    return float(np.abs(np.cumsum(p) / current.count - np.cumsum(q) / history.count).max())


def _count_common_buckets(current: Moments, history: Moments) -> tuple[Ints, Ints]:
    """Count the values of both in every bucket that either has, in ascending order."""
    if not (current.count and history.count):
        raise ValueError("no numbers to compare")
    buckets = sorted(current.buckets.keys() | history.buckets.keys())
    p, q = (np.array([moments.buckets.get(b, 0) for b in buckets], dtype=np.int64) for moments in (current, history))
    return p, q
