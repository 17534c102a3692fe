"""Uncertainty scores of a text from the statistics of its tokens. All scores: higher = better supported.

AttenHScore is eq. 1 to 5 of "Invoke Interfaces Only When Needed" (AttenHScore's paper; all equations here are its). The other
scores are those that the paper compares it with. A text can be a sentence of a response: its tokens keep the statistics that
they have within the whole response.
"""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.uncertainty.token_statistics import TokenStatistics


class AttentionWeighting(StrEnum):
    """Attention that weights a token: the highest from a later token (the paper's), the mean, or the last token's."""

    MAX = "max"
    MEAN = "mean"
    LAST = "last"

    def compute_weights(self, tokens: TokenStatistics) -> Floats:
        """Return Atten(x_i) = exp(attention) of each token, eq. 5; 1 to e."""
        return np.asarray(np.exp(getattr(tokens, f"attention_{self.value}")))


class UncertaintyScore(StrEnum):
    """An uncertainty score.

    attenhscore: -max over windows of H, see `attenhscore`.
    surprisal: -max over windows of G, see `surprisal`.
    perplexity: mean of log p(x_i), which is -log of the perplexity.
    energy: mean of log sum exp of the logits.
    entropy: -mean of the entropy: the length-normalized entropy of one answer.
    avg_range: mean of p_max - p_min.
    lexical_similarity, eigenscore: comparisons of several answers to the question, see `pipeline.uncertainty.samples`.
    """

    ATTENHSCORE = "attenhscore"
    SURPRISAL = "surprisal"
    PERPLEXITY = "perplexity"
    ENERGY = "energy"
    ENTROPY = "entropy"
    AVG_RANGE = "avg_range"
    LEXICAL_SIMILARITY = "lexical_similarity"
    EIGENSCORE = "eigenscore"

    @property
    def compares_samples(self) -> bool:
        """Whether the score compares several answers, and so has no value of a single text."""
        return self in (UncertaintyScore.LEXICAL_SIMILARITY, UncertaintyScore.EIGENSCORE)


def compute_score(score: UncertaintyScore, tokens: TokenStatistics, window: int, attention: AttentionWeighting) -> float:
    """Compute a score of a text.

    Args:
        score: A score that does not compare samples.
        tokens: Statistics of the text's tokens.
        window: K, tokens per window, for attenhscore and surprisal.
        attention: Attention that weights a token, for attenhscore and surprisal.

    Returns:
        The score; NaN for a text without tokens.
    """
    if not len(tokens):
        return float("nan")
    if score is UncertaintyScore.ATTENHSCORE:
        return -attenhscore(tokens, window, attention)
    if score is UncertaintyScore.SURPRISAL:
        return -surprisal(tokens, window, attention)
    return float(np.mean(_TOKEN_SCORES[score](tokens)))


_TOKEN_SCORES: dict[UncertaintyScore, Callable[[TokenStatistics], Floats]] = {
    UncertaintyScore.PERPLEXITY: lambda tokens: tokens.logprob,
    UncertaintyScore.ENERGY: lambda tokens: -tokens.energy,
    UncertaintyScore.ENTROPY: lambda tokens: -tokens.entropy,
    UncertaintyScore.AVG_RANGE: lambda tokens: tokens.spread,
}


def attenhscore(tokens: TokenStatistics, window: int, attention: AttentionWeighting = AttentionWeighting.MAX) -> float:
    """Compute AttenHScore, the accumulation and propagation of hallucinations: the largest H over windows of K tokens.

        H = -sum_i p_max(x_i) Atten(x_i) log p_max(x_i)    (eq. 1, 2)
        S = max(H_1, …, H_n)                               (eq. 3)

    Args:
        tokens: Statistics of one token or more.
        window: K; in the paper 10 to 20 is best.
        attention: Attention in Atten.

    Returns:
        S >= 0, higher = less certain.
    """
    terms = -np.exp(tokens.top_logprob) * attention.compute_weights(tokens) * tokens.top_logprob
    return _find_largest_window_sum(terms, window)


def surprisal(tokens: TokenStatistics, window: int, attention: AttentionWeighting = AttentionWeighting.MAX) -> float:
    """Compute the uncertainty of a given text, eq. 6, as the largest G over windows of K tokens.

        G = -sum_i Atten(x_i) log p(x_i)

    Args:
        tokens: Statistics of one token or more.
        window: K.
        attention: Attention in Atten.

    Returns:
        The largest G >= 0, higher = less certain.
    """
    return _find_largest_window_sum(token_surprisals(tokens, attention), window)


def token_surprisals(tokens: TokenStatistics, attention: AttentionWeighting) -> Floats:
    """Return the term of each token in G (eq. 6): -Atten(x_i) log p(x_i) >= 0."""
    return np.asarray(-attention.compute_weights(tokens) * tokens.logprob)


def _find_largest_window_sum(terms: Floats, window: int) -> float:
    """Return the largest sum over consecutive windows of `window` terms. The last window can be shorter."""
    return float(np.add.reduceat(terms, np.arange(0, len(terms), window)).max())
