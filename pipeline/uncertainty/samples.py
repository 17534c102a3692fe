"""Compare several answers to one question by their words and by a model's states. Higher = more alike = better supported."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.text.words import extract_words

ALPHA = 1e-3
"""Keeps the logarithm of the covariance's eigenvalues finite if answers are equal, as in the EigenScore paper."""


def lexical_similarity(answers: Sequence[str]) -> float:
    """Compute the mean Rouge-L of all pairs of answers (Lin et al. 2022).

    Returns:
        0 to 1; NaN for fewer than two answers with words.
    """
    word_lists = [answer_words for answer in answers if (answer_words := extract_words(answer))]
    similarities = [rouge_l(first, second) for first, second in combinations(word_lists, 2)]
    return float(np.mean(similarities)) if similarities else float("nan")


def rouge_l(first: Sequence[str], second: Sequence[str]) -> float:
    """Compute the F1 of the longest common subsequence of two word lists: 2 LCS / (n + m), 0 to 1."""
    return 2 * _lcs_length(first, second) / (len(first) + len(second)) if first or second else 0.0


def _lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence with one bit per word of `first` (Hyyrö 2004)."""
    positions: dict[str, int] = {}
    for i, word in enumerate(first):
        positions[word] = positions.get(word, 0) | 1 << i
    free = full = (1 << len(first)) - 1
    for word in second:
        matched = free & positions.get(word, 0)
        free = ((free + matched) | (free - matched)) & full
    return len(first) - free.bit_count()


def eigenscore(states: Floats) -> float:
    """Compute minus the EigenScore (Chen et al. 2024): how similar the answers are in a model's middle layer.

        E = (1/K) sum_i log lambda_i(Z J Z' + alpha I),   J = I - 1 1'/d

    Args:
        states: (K, d): the hidden state of each answer's last token.

    Returns:
        -E; NaN for fewer than two answers.
    """
    if len(states) < 2:
        return float("nan")
    centered = states - states.mean(axis=1, keepdims=True)
    eigenvalues = np.linalg.eigvalsh(centered @ centered.T)
    return -float(np.mean(np.log(np.maximum(eigenvalues, 0.0) + ALPHA)))
