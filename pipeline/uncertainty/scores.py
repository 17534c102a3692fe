"""Scores of uncertainty of a text, from what a model tells of its tokens. All of them: higher = better supported.

AttenHScore is that of "Invoke Interfaces Only When Needed", eq. 1 to 5; what it is compared with there stands beside it. A text
may be a sentence of a response: its tokens are judged by what the model told of them within the whole.
"""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.uncertainty.signs import Signs


class Attention(StrEnum):
    """Which attention weighs a token: the highest that a later token pays it (the paper's), their mean, or the last token's."""

    MAX = "max"
    MEAN = "mean"
    LAST = "last"

    def of(self, signs: Signs) -> Floats:
        """Atten(x_i) = exp(attention), eq. 5; 1 to e."""
        return np.asarray(np.exp(getattr(signs, f"attention_{self.value}")))


class Score(StrEnum):
    """A score of uncertainty.

    attenhscore: -max over windows of H, see `attenhscore`.
    surprisal: the same of the tokens that stand there, see `surprisal`.
    perplexity: mean log p(x_i), which is -log of the perplexity.
    energy: mean of log sum exp of the logits.
    entropy: -mean entropy: the length-normalised entropy of one answer.
    avg_range: mean of p_max - p_min.
    lexical_similarity, eigenscore: of several answers to the question, see `pipeline.uncertainty.samples`.
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
    def of_samples(self) -> bool:
        """Whether it compares several answers, and says nothing of one."""
        return self in (Score.LEXICAL_SIMILARITY, Score.EIGENSCORE)


def score_text(score: Score, signs: Signs, window: int, attention: Attention) -> float:
    """A score of a text.

    Args:
        score: Which; none of several answers.
        signs: Of its tokens.
        window: K, tokens a window, for attenhscore and surprisal.
        attention: What weighs a token there.

    Returns:
        The score; NaN for a text without tokens.
    """
    if not len(signs):
        return float("nan")
    if score is Score.ATTENHSCORE:
        return -attenhscore(signs, window, attention)
    if score is Score.SURPRISAL:
        return -surprisal(signs, window, attention)
    return float(np.mean(_MEANS[score](signs)))


_MEANS: dict[Score, Callable[[Signs], Floats]] = {
    Score.PERPLEXITY: lambda signs: signs.logprob,
    Score.ENERGY: lambda signs: -signs.energy,
    Score.ENTROPY: lambda signs: -signs.entropy,
    Score.AVG_RANGE: lambda signs: signs.spread,
}


def attenhscore(signs: Signs, window: int, attention: Attention = Attention.MAX) -> float:
    """Hallucination that gathers and spreads over a text: H of the K tokens of a window, and the largest H counts.

        H = -sum_i p_max(x_i) Atten(x_i) log p_max(x_i),   S = max(H_1, …, H_n)

    Args:
        signs: Of one token or more.
        window: K; the paper does best with 10 to 20.
        attention: Which attention Atten is made of.

    Returns:
        S >= 0, higher = less sure.
    """
    terms = -np.exp(signs.top_logprob) * attention.of(signs) * signs.top_logprob
    return _largest(terms, window)


def surprisal(signs: Signs, window: int, attention: Attention = Attention.MAX) -> float:
    """The uncertainty of a given text (eq. 6), as the largest sum over a window of K tokens.

        G = -sum_i Atten(x_i) log p(x_i)

    Args:
        signs: Of one token or more.
        window: K.
        attention: Which attention Atten is made of.

    Returns:
        The largest G >= 0, higher = less sure.
    """
    return _largest(surprisals(signs, attention), window)


def surprisals(signs: Signs, attention: Attention) -> Floats:
    """What each token adds to G (eq. 6): -Atten(x_i) log p(x_i) >= 0."""
    return np.asarray(-attention.of(signs) * signs.logprob)


def _largest(terms: Floats, window: int) -> float:
    """The largest sum of `window` terms in a row, windows one after the other; the last may be shorter."""
    return float(np.add.reduceat(terms, np.arange(0, len(terms), window)).max())
