"""How alike several answers to one question are: in words, and in a model's states. Higher = more alike = better supported."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.calibration.baselines import words

ALPHA = 1e-3
"""Keeps the logarithm of the covariance's eigenvalues finite where answers are equal, as in the EigenScore paper."""


def lexical_similarity(answers: Sequence[str]) -> float:
    """Mean Rouge-L of all pairs of answers (Lin et al. 2022).

    Returns:
        0 to 1; NaN for fewer than two answers with words.
    """
    said = [found for answer in answers if (found := words(answer))]
    pairs = [rouge_l(one, other) for one, other in combinations(said, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")


def rouge_l(one: Sequence[str], other: Sequence[str]) -> float:
    """F1 of the longest common subsequence of two texts of words, 0 to 1; 2 LCS / (n + m)."""
    return 2 * _common(one, other) / (len(one) + len(other)) if one or other else 0.0


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence; a bit a word of `one`, a step a word of `other` (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for i, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << i
    free = full = (1 << len(one)) - 1
    for word in other:
        met = free & places.get(word, 0)
        free = ((free + met) | (free - met)) & full
    return len(one) - free.bit_count()


def eigenscore(states: Floats) -> float:
    """Minus the EigenScore (Chen et al. 2024): how little the answers differ in a model's middle layer.

        E = (1/K) sum_i log lambda_i(Z J Z' + alpha I),   J = I - 1 1'/d

    Args:
        states: (K, d): the hidden state of each answer's last token.

    Returns:
        -E; NaN for fewer than two answers.
    """
    if len(states) < 2:
        return float("nan")
    centred = states - states.mean(axis=1, keepdims=True)
    eigenvalues = np.linalg.eigvalsh(centred @ centred.T)
    return -float(np.mean(np.log(np.maximum(eigenvalues, 0.0) + ALPHA)))
