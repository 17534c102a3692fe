"""Aggregate sentence scores to a response score: a positivity policy, then one of five means (arXiv 2506.22486, eq. 6-10)."""

import itertools
from enum import StrEnum

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints


class Mean(StrEnum):
    """Mean that aggregates the sentence scores of a response."""

    HARMONIC = "harmonic"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    MIN = "min"
    MAX = "max"


class PositivityPolicy(StrEnum):
    """Policy that makes scores <= 0 positive; the paper only states that they are "adjusted"."""

    CLIP = "clip"
    CDF = "cdf"
    SHIFT = "shift"
    NONE = "none"


POSITIVE_ONLY = frozenset({Mean.HARMONIC, Mean.GEOMETRIC})


def list_valid_pairs(sentences_decide: bool = False) -> list[tuple[Mean, PositivityPolicy]]:
    """List every mean with every positivity policy that it can use.

    Args:
        sentences_decide: Whether a sentence can decide its response. Its threshold is a fraction of the response's threshold,
            which is meaningful only for positive scores. The minimum does not need it.
    """
    positive_only = frozenset(Mean) - {Mean.MIN} if sentences_decide else POSITIVE_ONLY
    return [
        (mean, policy)
        for mean, policy in itertools.product(Mean, PositivityPolicy)
        if not (mean in positive_only and policy is PositivityPolicy.NONE)
    ]


def make_positive(scores: Floats, policy: PositivityPolicy, *, epsilon: float, low: float) -> Floats:
    """Apply a positivity policy to ensemble scores.

    Args:
        scores: Ensemble z-scores of sentences.
        policy: clip: max(z, epsilon). cdf: standard normal CDF of z, at least epsilon. shift: max(z - low, 0) + epsilon.
            none: z as it is.
        epsilon: Smallest value that the first three policies return; > 0.
        low: Smallest ensemble score in the fitted data (`pipeline.verdict.ensemble.find_lowest_score`), for shift.

    Returns:
        Array of the same length; > 0 except under none.
    """
    match policy:
        case PositivityPolicy.CLIP:
            return np.maximum(scores, epsilon)
        case PositivityPolicy.CDF:
            from scipy.special import ndtr  # takes long to import

            return np.maximum(ndtr(scores), epsilon)  # type: ignore[no-any-return]
        case PositivityPolicy.SHIFT:
            return np.maximum(scores - low, 0.0) + epsilon
        case PositivityPolicy.NONE:
            return scores


def invert_positive(value: float, policy: PositivityPolicy, *, epsilon: float, low: float) -> float:
    """Return the largest ensemble score that `make_positive` maps to at most `value`; -inf if there is none."""
    if policy is PositivityPolicy.NONE:
        return value
    if value < epsilon:
        return -np.inf
    match policy:
        case PositivityPolicy.CLIP:
            return value
        case PositivityPolicy.CDF:
            from scipy.special import ndtri

            return float(ndtri(min(value, 1.0)))
        case PositivityPolicy.SHIFT:
            return value - epsilon + low


def aggregate_scores(scores: Floats, counts: Ints, mean: Mean) -> Floats:
    """Aggregate the sentence scores of each response. Without a sentence, a response has no score.

        harmonic    n / sum_j 1/s_j          (eq. 6, s_j > 0)
        arithmetic  1/n sum_j s_j            (eq. 7)
        geometric   exp(1/n sum_j log s_j)   (eq. 8, s_j > 0)
        min         min_j s_j                (eq. 9)
        max         max_j s_j                (eq. 10)

    Args:
        scores: Sentence scores of all responses in order; length sum(counts).
        counts: Sentences per response, each >= 0.
        mean: The mean.

    Returns:
        A score per response; NaN for a response without sentences.
    """
    result = np.full(len(counts), np.nan)
    filled = counts > 0
    if not filled.any():
        return result
    starts = (np.cumsum(counts) - counts)[filled]
    n = counts[filled]
    match mean:
        case Mean.HARMONIC:
            result[filled] = n / np.add.reduceat(1.0 / scores, starts)
        case Mean.ARITHMETIC:
            result[filled] = np.add.reduceat(scores, starts) / n
        case Mean.GEOMETRIC:
            result[filled] = np.exp(np.add.reduceat(np.log(scores), starts) / n)
        case Mean.MIN:
            result[filled] = np.minimum.reduceat(scores, starts)
        case Mean.MAX:
            result[filled] = np.maximum.reduceat(scores, starts)
    return result
