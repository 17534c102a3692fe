"""From the members' values to a score a response, in one call: normalise, ensemble, make positive, aggregate, limit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.verdict.aggregate import Mean, Positive, aggregate, make_positive
from ragassay.pipeline.verdict.normalize import Fit, ensemble, lowest


@dataclass(frozen=True)
class Rule:
    """What turns values into scores.

    Attributes:
        fits: Member -> its mu and sigma.
        mean: How a response's sentence scores become one.
        positive: How scores <= 0 are made positive before that.
        epsilon: Smallest value that the policy gives.
        weights: Member -> its weight in the ensemble, >= 0, sum 1; None is equal weights.
        sentence: Threshold of a sentence as a fraction of the response's, above 0, at most 1: a sentence at or below it is
            flagged, and decides. None leaves the decision to the mean alone, as the source does.
    """

    fits: Mapping[str, Fit]
    mean: Mean
    positive: Positive
    epsilon: float
    weights: Mapping[str, float] | None = None
    sentence: float | None = None


@dataclass(frozen=True)
class Scores:
    """What a rule gives.

    Attributes:
        response: One score a response; NaN where no sentence has one.
        sentence: Ensemble score (eq. 5) of every sentence, in one array; NaN where no member has a value for it.
        positive: The same, made positive: what a response of that sentence alone would score by the mean.
        ceiling: The most that its response may score, for every sentence.
    """

    response: Floats
    sentence: Floats
    positive: Floats
    ceiling: Floats


def apply_rule(rule: Rule, values: Mapping[str, Floats], counts: Ints) -> Scores:
    """Score responses.

    With p_ij the positive score of sentence j and f the fraction `rule.sentence`, a response's score is

        s_i = min(mean_j p_ij, min_j p_ij / f)

    so that s_i <= tau if, and only if, the mean is at or below tau or a sentence is at or below f tau. No other sentence can
    outweigh that one. Without f the score is the mean.

    Args:
        rule: How.
        values: Member -> a value a sentence, of all responses one after the other.
        counts: Sentences a response.
    """
    if not len(counts):
        empty = np.array([])
        return Scores(empty, empty, empty, empty)
    sentence = ensemble(values, rule.fits, rule.weights)
    low = lowest(rule.fits, list(values), rule.weights)
    positive = make_positive(sentence, rule.positive, epsilon=rule.epsilon, low=low)
    known = ~np.isnan(sentence)
    owners = np.repeat(np.arange(len(counts)), counts)
    sizes = np.bincount(owners[known], minlength=len(counts))
    response = aggregate(positive[known], sizes, rule.mean)
    if rule.sentence is None:
        return Scores(response, sentence, positive, positive)
    # Below 0 a fraction of the threshold would lie above it.
    ceiling = positive if rule.positive is Positive.NONE else positive / rule.sentence
    return Scores(np.minimum(response, aggregate(ceiling[known], sizes, Mean.MIN)), sentence, positive, ceiling)


def flag_sentences(scores: Scores, counts: Ints, threshold: float) -> Bools:
    """Return whether each sentence is flagged.

    A sentence is flagged if it decides (its ceiling is at or below the threshold). In a hallucinated response, each sentence
    that would be hallucinated alone is flagged too, and the lowest one always. A mean is never below the lowest sentence, so a
    response is hallucinated exactly if one of its sentences is flagged. Without `rule.sentence` a sentence decides nothing: it
    is flagged if it would be hallucinated alone, in a supported response too.

    Args:
        scores: What `apply_rule` returned.
        counts: Sentences per response, each at least 1.
        threshold: tau; NaN flags nothing.
    """
    if not len(counts):
        return np.zeros(0, dtype=bool)
    lowest_of_response = np.fmin.reduceat(scores.positive, np.cumsum(counts) - counts)
    limit = np.where(scores.response <= threshold, np.fmax(lowest_of_response, threshold), -np.inf)
    return (scores.ceiling <= threshold) | (scores.positive <= np.repeat(limit, counts))
