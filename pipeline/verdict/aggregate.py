"""Sentence scores to one score a response: positivity policy, then one of five means (arXiv 2506.22486, eq. 6 to 10)."""

import itertools
from enum import StrEnum

import numpy as np
from scipy.special import ndtr

from ragassay.pipeline.arrays import Floats, Ints


class Mean(StrEnum):
    """How a response's sentence scores become one."""

    HARMONIC = "harmonic"
    ARITHMETIC = "arithmetic"
    GEOMETRIC = "geometric"
    MIN = "min"
    MAX = "max"


class Positive(StrEnum):
    """How scores <= 0 are made positive; the source only says "adjusted"."""

    CLIP = "clip"
    CDF = "cdf"
    SHIFT = "shift"
    NONE = "none"


NEED_POSITIVE = frozenset({Mean.HARMONIC, Mean.GEOMETRIC})


def legal_pairs(sentences_decide: bool = False) -> list[tuple[Mean, Positive]]:
    """Every mean with every positivity policy that it can take.

    Args:
        sentences_decide: Whether a sentence can decide its response: its threshold is a fraction of the response's, and that
            means something for positive scores alone. The minimum does without.
    """
    plain = frozenset(Mean) - {Mean.MIN} if sentences_decide else NEED_POSITIVE
    return [pair for pair in itertools.product(Mean, Positive) if not (pair[0] in plain and pair[1] is Positive.NONE)]


def make_positive(scores: Floats, policy: Positive, *, epsilon: float, low: float) -> Floats:
    """Apply a positivity policy to ensemble scores.

    Args:
        scores: Ensemble z-scores of sentences.
        policy: clip: max(z, epsilon). cdf: standard normal CDF of z, at least epsilon. shift: max(z - low, 0) + epsilon.
            none: z as it is.
        epsilon: Smallest value that the first three give; > 0.
        low: Smallest ensemble score behind the fit (`pipeline.verdict.normalize.lowest`), used by shift.

    Returns:
        Array of the same length; > 0 except under none.
    """
    match policy:
        case Positive.CLIP:
            return np.maximum(scores, epsilon)
        case Positive.CDF:
            return np.maximum(ndtr(scores), epsilon)  # type: ignore[no-any-return]
        case Positive.SHIFT:
            return np.maximum(scores - low, 0.0) + epsilon
        case Positive.NONE:
            return scores


def aggregate(scores: Floats, counts: Ints, mean: Mean) -> Floats:
    """One score a response from its sentences' scores.

        harmonic    n / sum_j 1/s_j          (eq. 6, s_j > 0)
        arithmetic  1/n sum_j s_j            (eq. 7)
        geometric   exp(1/n sum_j log s_j)   (eq. 8, s_j > 0)
        min         min_j s_j                (eq. 9)
        max         max_j s_j                (eq. 10)

    Args:
        scores: Sentence scores of all responses, one after the other; length sum(counts).
        counts: Sentences a response, each >= 0.
        mean: Which one.

    Returns:
        One score a response, NaN where it has no sentence.
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
