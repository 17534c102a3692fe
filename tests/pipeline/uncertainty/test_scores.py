"""Scores by the formulas, by hand; laws of the windows; answers that are alike."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.uncertainty.samples import eigenscore, lexical_similarity, rouge_l
from ragassay.pipeline.uncertainty.scores import Attention, Score, attenhscore, score_text, surprisal
from ragassay.pipeline.uncertainty.signs import ARRAYS, Signs

LOGPROBS = st.lists(st.floats(-20, 0), min_size=1, max_size=40)


def signs(top: list[float], attention: list[float] | None = None) -> Signs:
    """Signs of tokens of which only the likeliest is known."""
    size = len(top)
    arrays = {name: np.zeros(size) for name in ARRAYS}
    arrays |= {"top_logprob": np.array(top), "logprob": np.array(top), "attention_max": np.array(attention or [0.0] * size)}
    return Signs(**arrays)


def test_attenhscore_by_hand() -> None:
    found = signs([math.log(0.5), math.log(0.25), math.log(0.8)], [0.3, 0.1, 0.0])
    terms = [
        0.5 * math.exp(0.3) * -math.log(0.5), 0.25 * math.exp(0.1) * -math.log(0.25), 0.8 * 1.0 * -math.log(0.8)
    ]  # fmt: skip
    assert attenhscore(found, 10) == pytest.approx(sum(terms))
    assert attenhscore(found, 2) == pytest.approx(max(terms[0] + terms[1], terms[2]))
    assert attenhscore(found, 1) == pytest.approx(max(terms))
    assert attenhscore(found, 2, Attention.LAST) == pytest.approx(
        max(terms[0] / math.exp(0.3) + terms[1] / math.exp(0.1), terms[2])
    )
    assert score_text(Score.ATTENHSCORE, found, 2, Attention.MAX) == -attenhscore(found, 2)


def test_surprisal_and_perplexity_are_of_the_tokens_that_stand_there() -> None:
    found = Signs(**{**vars(signs([math.log(0.9)] * 2, [0.2, 0.0])), "logprob": np.log([0.1, 0.4])})
    assert surprisal(found, 10) == pytest.approx(-math.exp(0.2) * math.log(0.1) - math.log(0.4))
    assert score_text(Score.PERPLEXITY, found, 10, Attention.MAX) == pytest.approx((math.log(0.1) + math.log(0.4)) / 2)


@given(LOGPROBS)
def test_a_model_that_is_sure_of_every_token_has_no_doubt(logprobs: list[float]) -> None:
    assert attenhscore(signs([0.0] * len(logprobs)), 10) == 0
    assert surprisal(signs([0.0] * len(logprobs)), 10) == 0


@given(LOGPROBS, st.integers(1, 20))
def test_the_largest_window_counts_and_more_attention_means_more_doubt(top: list[float], window: int) -> None:
    one = attenhscore(signs(top), window)
    parts = [attenhscore(signs(top[i : i + window]), window) for i in range(0, len(top), window)]
    assert one == pytest.approx(max(parts))
    assert attenhscore(signs(top, [0.5] * len(top)), window) == pytest.approx(math.exp(0.5) * one)


@pytest.mark.parametrize("score", [score for score in Score if not score.of_samples])
def test_a_text_without_tokens_has_no_score(score: Score) -> None:
    assert math.isnan(score_text(score, signs([]), 10, Attention.MAX))


def naive_common(one: list[int], other: list[int]) -> int:
    """Longest common subsequence by the table."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.lists(st.integers(0, 4), max_size=15), st.lists(st.integers(0, 4), max_size=15))
def test_rouge_l_is_that_of_the_table(one: list[int], other: list[int]) -> None:
    expected = 2 * naive_common(one, other) / (len(one) + len(other)) if one or other else 0.0
    assert rouge_l(list(map(str, one)), list(map(str, other))) == pytest.approx(expected)


def test_answers_that_are_alike() -> None:
    assert lexical_similarity(["The desk opens at 9.", "the desk opens at 9"]) == 1
    assert lexical_similarity(["red green", "blue"]) == 0
    assert math.isnan(lexical_similarity(["only one", "…"]))


def test_eigenscore_falls_with_what_differs() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=64)
    alike = np.array([base + 1e-3 * rng.normal(size=64) for _ in range(4)])
    apart = rng.normal(size=(4, 64))
    assert eigenscore(alike) > eigenscore(apart)
    assert math.isnan(eigenscore(apart[:1]))
    centred = apart - apart.mean(axis=1, keepdims=True)
    expected = -np.linalg.slogdet(centred @ centred.T + 1e-3 * np.eye(4))[1] / 4
    assert eigenscore(apart) == pytest.approx(expected)
