"""Scores by their formulas, computed by hand; laws of the windows; similar answers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.uncertainty.samples import eigenscore, lexical_similarity, rouge_l
from ragassay.pipeline.uncertainty.scores import AttentionWeighting, UncertaintyScore, attenhscore, compute_score, surprisal
from ragassay.pipeline.uncertainty.token_statistics import TOKEN_ARRAYS, TokenStatistics

LOGPROBS = st.lists(st.floats(-20, 0), min_size=1, max_size=40)


def make_statistics(top: list[float], attention: list[float] | None = None) -> TokenStatistics:
    """Make statistics in which each token is the most likely one."""
    size = len(top)
    arrays = {name: np.zeros(size) for name in TOKEN_ARRAYS}
    arrays |= {"top_logprob": np.array(top), "logprob": np.array(top), "attention_max": np.array(attention or [0.0] * size)}
    return TokenStatistics(**arrays)


def test_attenhscore_equals_that_computed_by_hand() -> None:
    statistics = make_statistics([math.log(0.5), math.log(0.25), math.log(0.8)], [0.3, 0.1, 0.0])
    terms = [
        0.5 * math.exp(0.3) * -math.log(0.5), 0.25 * math.exp(0.1) * -math.log(0.25), 0.8 * 1.0 * -math.log(0.8)
    ]  # fmt: skip
    assert attenhscore(statistics, 10) == pytest.approx(sum(terms))
    assert attenhscore(statistics, 2) == pytest.approx(max(terms[0] + terms[1], terms[2]))
    assert attenhscore(statistics, 1) == pytest.approx(max(terms))
    assert attenhscore(statistics, 2, AttentionWeighting.LAST) == pytest.approx(
        max(terms[0] / math.exp(0.3) + terms[1] / math.exp(0.1), terms[2])
    )
    assert compute_score(UncertaintyScore.ATTENHSCORE, statistics, 2, AttentionWeighting.MAX) == -attenhscore(statistics, 2)


def test_surprisal_and_perplexity_use_the_tokens_of_the_text() -> None:
    statistics = TokenStatistics(**{**vars(make_statistics([math.log(0.9)] * 2, [0.2, 0.0])), "logprob": np.log([0.1, 0.4])})
    assert surprisal(statistics, 10) == pytest.approx(-math.exp(0.2) * math.log(0.1) - math.log(0.4))
    assert compute_score(UncertaintyScore.PERPLEXITY, statistics, 10, AttentionWeighting.MAX) == pytest.approx(
        (math.log(0.1) + math.log(0.4)) / 2
    )


@given(LOGPROBS)
def test_a_model_that_is_certain_of_every_token_has_no_uncertainty(logprobs: list[float]) -> None:
    assert attenhscore(make_statistics([0.0] * len(logprobs)), 10) == 0
    assert surprisal(make_statistics([0.0] * len(logprobs)), 10) == 0


@given(LOGPROBS, st.integers(1, 20))
def test_the_largest_window_counts_and_attention_raises_the_uncertainty(top: list[float], window: int) -> None:
    score = attenhscore(make_statistics(top), window)
    parts = [attenhscore(make_statistics(top[i : i + window]), window) for i in range(0, len(top), window)]
    assert score == pytest.approx(max(parts))
    assert attenhscore(make_statistics(top, [0.5] * len(top)), window) == pytest.approx(math.exp(0.5) * score)


@pytest.mark.parametrize("score", [score for score in UncertaintyScore if not score.compares_samples])
def test_a_text_without_tokens_has_no_score(score: UncertaintyScore) -> None:
    assert math.isnan(compute_score(score, make_statistics([]), 10, AttentionWeighting.MAX))


def lcs_length_by_table(first: list[int], second: list[int]) -> int:
    """Compute the length of the longest common subsequence by dynamic programming."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.lists(st.integers(0, 4), max_size=15), st.lists(st.integers(0, 4), max_size=15))
def test_rouge_l_equals_that_by_dynamic_programming(first: list[int], second: list[int]) -> None:
    expected = 2 * lcs_length_by_table(first, second) / (len(first) + len(second)) if first or second else 0.0
    assert rouge_l(list(map(str, first)), list(map(str, second))) == pytest.approx(expected)


def test_lexical_similarity_of_equal_and_different_answers() -> None:
    assert lexical_similarity(["The desk opens at 9.", "the desk opens at 9"]) == 1
    assert lexical_similarity(["red green", "blue"]) == 0
    assert math.isnan(lexical_similarity(["only one", "…"]))


def test_different_states_lower_the_eigenscore() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=64)
    alike = np.array([base + 1e-3 * rng.normal(size=64) for _ in range(4)])
    apart = rng.normal(size=(4, 64))
    assert eigenscore(alike) > eigenscore(apart)
    assert math.isnan(eigenscore(apart[:1]))
    centered = apart - apart.mean(axis=1, keepdims=True)
    expected = -np.linalg.slogdet(centered @ centered.T + 1e-3 * np.eye(4))[1] / 4
    assert eigenscore(apart) == pytest.approx(expected)
