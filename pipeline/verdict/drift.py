"""How far two distributions are apart, from their mergeable sketches alone (buckets 1 % wide, see `moments`)."""

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.schemas.stats import Moments

PSI_BINS = 10
PSI_FLOOR = 1e-4
"""Share that an empty bin counts as, so that the logarithm stays finite."""


def population_stability(now: Moments, history: Moments) -> float:
    """Population stability index over the history's deciles, >= 0; by custom 0.1 is small and 0.25 a shift.

        PSI = sum_b (p_b - q_b) ln(p_b / q_b)

    p and q are the shares of tonight and of history in each bin. A bucket that holds more than one decile is a bin of its own:
    what lies below it is as far from history as what lies above.

    Raises:
        ValueError: One of the two holds nothing.
    """
    p, q = (side / side.sum() for side in _counts(now, history))
    ends = np.searchsorted(np.cumsum(q), np.arange(1, PSI_BINS) / PSI_BINS - 1e-12)
    crowded, deciles = np.unique(ends, return_counts=True)
    starts = np.unique([0, *crowded[deciles > 1], *(crowded[crowded < len(q) - 1] + 1)])
    p, q = (np.maximum(np.add.reduceat(shares, starts), PSI_FLOOR) for shares in (p, q))
    return float(((p - q) * np.log(p / q)).sum())


def kolmogorov_smirnov(now: Moments, history: Moments) -> float:
    """Kolmogorov-Smirnov distance: the largest gap between the two distribution functions, at the buckets' edges; 0 to 1.

    Raises:
        ValueError: One of the two holds nothing.
    """
    p, q = _counts(now, history)
    # Counts are summed, not shares, whose rounding errors would add up to more than 1.
    return float(np.abs(np.cumsum(p) / now.count - np.cumsum(q) / history.count).max())


def _counts(now: Moments, history: Moments) -> tuple[Ints, Ints]:
    """Numbers of each in every bucket that either has, in ascending order."""
    if not (now.count and history.count):
        raise ValueError("no numbers to compare")
    buckets = sorted(now.buckets.keys() | history.buckets.keys())
    p, q = (np.array([side.buckets.get(b, 0) for b in buckets], dtype=np.int64) for side in (now, history))
    return p, q
