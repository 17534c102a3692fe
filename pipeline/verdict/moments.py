"""Compute mergeable statistics of a member's values: count, mean, M2, extremes and a quantile sketch.

Mean and M2 are merged by the parallel-variance formula (Chan, Golub and LeVeque 1979):

    delta = mean_b - mean_a,   n = n_a + n_b
    mean  = mean_a + delta * n_b / n
    M2    = M2_a + M2_b + delta^2 * n_a * n_b / n

The sketch is DDSketch (Masson, Rim and Lee 2019, arXiv 1908.10693): a histogram whose bucket edges grow by the factor gamma.
Any quantile is within 1 % of the true value (relative), merging adds counts, and the result does not depend on the order of
rows or partitions.
"""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Floats
from ragassay.schemas.stats import Moments

_GAMMA = 1.01
_LOG_GAMMA = math.log(_GAMMA)
_TINY = 1e-12  # smaller magnitudes count as zero
_OFFSET = 1 << 20  # bucket of +-x is +-(_OFFSET + k) with gamma^(k-1) < x <= gamma^k: never 0, which is the zero bucket


def compute_moments(values: npt.ArrayLike) -> Moments:
    """Compute the moments of finite numbers.

    Args:
        values: Array of any shape; computed in float64.

    Returns:
        Moments, with count 0 for an empty array.

    Raises:
        ValueError: A value is NaN or infinite.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if x.size == 0:
        return Moments()
    if not np.isfinite(x).all():
        raise ValueError("scores must be finite numbers")
    mean = float(x.mean())
    return Moments(
        count=int(x.size),
        mean=mean,
        m2=float(np.square(x - mean).sum()),
        low=float(x.min()),
        high=float(x.max()),
        buckets=_count_buckets(x),
    )


def merge_moments(parts: Iterable[Moments]) -> Moments:
    """Merge the moments of several sets by the parallel-variance formula; without parts, return count 0."""
    total = Moments()
    for part in parts:
        total = _merge_two(total, part)
    return total


def estimate_quantile(moments: Moments, q: float) -> float:
    """Estimate the q-quantile (0 <= q <= 1) from the sketch, rounded up by at most 1 % of its magnitude.

    At least a share q of the numbers is <= the result, ties included.

    Raises:
        ValueError: There are no numbers, or q is out of range.
    """
    if not 0 <= q <= 1:
        raise ValueError(f"a quantile must be between 0 and 1, not {q}")
    if moments.low is None or moments.high is None:
        raise ValueError("no numbers to take a quantile of")
    rank = math.ceil(q * moments.count)
    cumulative = 0
    value = moments.high
    for bucket in sorted(moments.buckets):
        cumulative += moments.buckets[bucket]
        if cumulative >= max(rank, 1):
            value = get_bucket_edge(bucket)
            break
    return min(max(value, moments.low), moments.high)


def _merge_two(a: Moments, b: Moments) -> Moments:
    if not a.count:
        return b
    if not b.count:
        return a
    n = a.count + b.count
    delta = b.mean - a.mean
    buckets = dict(a.buckets)
    for bucket, count in b.buckets.items():
        buckets[bucket] = buckets.get(bucket, 0) + count
    assert a.low is not None and b.low is not None and a.high is not None and b.high is not None
    return Moments(
        count=n,
        mean=a.mean + delta * b.count / n,
        m2=a.m2 + b.m2 + delta * delta * a.count * b.count / n,
        low=min(a.low, b.low),
        high=max(a.high, b.high),
        buckets=buckets,
    )


def _count_buckets(x: Floats) -> dict[int, int]:
    size = np.abs(x)
    index = np.zeros(x.shape, dtype=np.int64)
    nonzero = size > _TINY
    index[nonzero] = np.ceil(np.log(size[nonzero]) / _LOG_GAMMA).astype(np.int64) + _OFFSET
    bucket, count = np.unique(np.where(x < 0, -index, index), return_counts=True)
    return {int(b): int(c) for b, c in zip(bucket, count, strict=True)}


def get_bucket_edge(bucket: int) -> float:
    """Return the largest number in a bucket."""
    if bucket == 0:
        return _TINY
    exponent = abs(bucket) - _OFFSET
    edge = _GAMMA**exponent if bucket > 0 else -(_GAMMA ** (exponent - 1))
    return edge + abs(edge) * 1e-9  # a number on the edge must not exceed it by a rounding error
