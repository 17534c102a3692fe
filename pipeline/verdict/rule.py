"""From the members' values to a score a response, in one call: normalise, ensemble, make positive, aggregate."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints
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
    """

    fits: Mapping[str, Fit]
    mean: Mean
    positive: Positive
    epsilon: float
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Scores:
    """What a rule gives.

    Attributes:
        response: One score a response; NaN where no sentence has one.
        sentence: Ensemble score (eq. 5) of every sentence, in one array; NaN where no member has a value for it.
        positive: The same made positive, which is what the mean was taken of.
    """

    response: Floats
    sentence: Floats
    positive: Floats


def apply_rule(rule: Rule, values: Mapping[str, Floats], counts: Ints) -> Scores:
    """Score responses.

    Args:
        rule: How.
        values: Member -> a value a sentence, of all responses one after the other.
        counts: Sentences a response.
    """
    if not len(counts):
        empty = np.array([])
        return Scores(empty, empty, empty)
    sentence = ensemble(values, rule.fits, rule.weights)
    low = lowest(rule.fits, list(values), rule.weights)
    positive = make_positive(sentence, rule.positive, epsilon=rule.epsilon, low=low)
    known = ~np.isnan(sentence)
    owners = np.repeat(np.arange(len(counts)), counts)
    return Scores(aggregate(positive[known], np.bincount(owners[known], minlength=len(counts)), rule.mean), sentence, positive)
