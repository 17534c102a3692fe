"""Score responses from the members' values (normalize, combine, make positive, aggregate, limit), and decide their verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy, aggregate_scores, invert_positive, make_positive
from ragassay.pipeline.verdict.ensemble import NormalizationFit, combine_members, find_lowest_score
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, SentenceState

_STATES = [state.value for state in SentenceState]
_SUPPORTED, _DOUBTFUL, _FLAGGED = (np.int8(number) for number in range(len(_STATES)))


@dataclass(frozen=True)
class Rule:
    """Rule that turns member values into scores.

    Attributes:
        fits: Member -> mu and sigma.
        mean: Mean that aggregates the sentence scores of a response.
        positive: Policy that makes sentence scores <= 0 positive before that.
        epsilon: Smallest value that the policy returns.
        weights: Member -> weight in the ensemble, >= 0, sum 1; None for equal weights.
        sentence_fraction: Threshold of a sentence as a fraction of the response's threshold, above 0 and at most 1. A sentence
            at or below it is flagged and decides the verdict. None: the mean alone decides, as in the paper.
    """

    fits: Mapping[str, NormalizationFit]
    mean: Mean
    positive: PositivityPolicy
    epsilon: float
    weights: Mapping[str, float] | None = None
    sentence_fraction: float | None = None


@dataclass(frozen=True)
class RuleScores:
    """Scores that a rule computes.

    Attributes:
        response: A score per response; NaN if none of its sentences has a score.
        sentence: Ensemble score of every sentence (arXiv 2506.22486, eq. 5), in one array; NaN if no member has a value for it.
        sentence_positive: Sentence score after the positivity policy.
        response_ceiling: Upper bound of the response score that each sentence imposes; infinite if no sentence decides alone.
    """

    response: Floats
    sentence: Floats
    sentence_positive: Floats
    response_ceiling: Floats


def apply_rule(rule: Rule, values: Mapping[str, Floats], counts: Ints) -> RuleScores:
    """Score responses.

    With the positive score p_ij of sentence j and f = `rule.sentence_fraction`, the score of a response is

        s_i = min(mean_j p_ij, min_j p_ij / f)

    Therefore s_i <= tau if and only if the mean is at or below tau, or a sentence is at or below f tau. No other sentence can
    outweigh that sentence. Without f the score is the mean.

    Args:
        rule: The rule.
        values: Member -> a value per sentence, of all responses in order.
        counts: Sentences per response.
    """
    if not len(counts):
        empty = np.array([])
        return RuleScores(empty, empty, empty, empty)
    sentence = combine_members(values, rule.fits, rule.weights)
    low = find_lowest_score(rule.fits, list(values), rule.weights)
    positive = make_positive(sentence, rule.positive, epsilon=rule.epsilon, low=low)
    has_score = ~np.isnan(sentence)
    responses = np.repeat(np.arange(len(counts)), counts)
    scored_counts = np.bincount(responses[has_score], minlength=len(counts))
    response = aggregate_scores(positive[has_score], scored_counts, rule.mean)
    if rule.sentence_fraction is None:
        return RuleScores(response, sentence, positive, np.where(has_score, np.inf, np.nan))
    # A fraction of a negative threshold would be above the threshold.
    ceiling = positive if rule.positive is PositivityPolicy.NONE else positive / rule.sentence_fraction
    return RuleScores(
        np.minimum(response, aggregate_scores(ceiling[has_score], scored_counts, Mean.MIN)), sentence, positive, ceiling
    )


def find_sentence_limits(rule: Rule, threshold: float) -> tuple[float, float]:
    """Find the largest ensemble scores of a flagged and of a doubtful sentence.

    Args:
        rule: Rule with the fits of all its members.
        threshold: tau.

    Returns:
        The two limits; the first is -inf if no sentence decides alone.
    """
    low = find_lowest_score(rule.fits, list(rule.fits), rule.weights)

    def invert(value: float) -> float:
        return invert_positive(value, rule.positive, epsilon=rule.epsilon, low=low)

    if rule.sentence_fraction is None:
        return -np.inf, invert(threshold)
    fraction = 1.0 if rule.positive is PositivityPolicy.NONE else rule.sentence_fraction
    return invert(fraction * threshold), invert(threshold)


def classify_sentences(scores: RuleScores, threshold: float, has_missing: Bools) -> pa.Array:
    """Return the state of each sentence (`SentenceState`).

    A sentence is flagged if it makes its response hallucinated, whatever the other sentences are. Other sentences are doubtful
    if they would be hallucinated alone, or if the context lacks one of their terms. So a state depends on the sentence only,
    and a supported response has no flagged sentence.

    Args:
        scores: Result of `apply_rule`.
        threshold: tau; NaN flags nothing.
        has_missing: Whether a detector names a term of the sentence that the context lacks.

    Returns:
        String array; null for a sentence without a score.
    """
    is_doubtful = (scores.sentence_positive <= threshold) | has_missing
    states = np.where(scores.response_ceiling <= threshold, _FLAGGED, np.where(is_doubtful, _DOUBTFUL, _SUPPORTED))
    return pa.DictionaryArray.from_arrays(pa.array(states, mask=np.isnan(scores.sentence)), _STATES).cast(pa.string())


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
