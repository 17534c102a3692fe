"""Scores and flags of a rule, also with members that lack values."""

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.ensemble import NormalizationFit, combine_members, fit_detector
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.pipeline.verdict.rule import Rule, apply_rule, classify_sentences, find_sentence_limits

NAN = math.nan
FITS = {"a": NormalizationFit(0.0, 1.0, 4, -9.0), "b": NormalizationFit(1.0, 2.0, 4, -9.0)}
VALUES = {"a": np.array([1.0, NAN, 3.0, NAN]), "b": np.array([3.0, 5.0, NAN, NAN])}


def test_the_weight_of_a_member_without_a_value_goes_to_the_other_members() -> None:
    assert combine_members(VALUES, FITS) == pytest.approx([(1 + 1) / 2, 2.0, 3.0, NAN], nan_ok=True)
    weighted = combine_members(VALUES, FITS, {"a": 0.75, "b": 0.25})
    assert weighted == pytest.approx([0.75 * 1 + 0.25 * 1, 2.0, 3.0, NAN], nan_ok=True)


def test_a_member_without_weight_has_no_effect() -> None:
    assert combine_members(VALUES, FITS, {"a": 1.0, "b": 0.0}) == pytest.approx([1.0, NAN, 3.0, NAN], nan_ok=True)


def test_a_sentence_without_a_score_is_not_part_of_the_mean() -> None:
    rule = Rule(FITS, Mean.ARITHMETIC, PositivityPolicy.NONE, 0.01)
    scores = apply_rule(rule, VALUES, np.array([2, 1, 1]))
    assert scores.response == pytest.approx([1.5, 3.0, NAN], nan_ok=True)
    harmonic = apply_rule(Rule(FITS, Mean.HARMONIC, PositivityPolicy.CLIP, 0.01), VALUES, np.array([4]))
    assert harmonic.response == pytest.approx([3 / (1 / 1 + 1 / 2 + 1 / 3)])


def test_a_detector_with_equal_values_has_z_scores_of_zero() -> None:
    fit = fit_detector(compute_moments([1.0, 1.0]))
    assert combine_members({"d": np.array([1.0, 1.0])}, {"d": fit}) == pytest.approx([0.0, 0.0])
    assert fit_detector(compute_moments([])).sigma == 1.0
    assert fit_detector(compute_moments([0.0, 1.0])).sigma == 0.5


POSITIVE = [policy for policy in PositivityPolicy if policy is not PositivityPolicy.NONE]


@given(
    values=st.lists(st.lists(st.floats(-4, 4), min_size=1, max_size=6), min_size=1, max_size=5),
    mean=st.sampled_from(Mean),
    policy=st.sampled_from(POSITIVE),
    fraction=st.floats(0.05, 1),
    tau=st.floats(0.01, 1),
)
def test_a_response_is_hallucinated_exactly_if_its_mean_or_a_sentence_is_at_its_threshold(
    values: list[list[float]], mean: Mean, policy: PositivityPolicy, fraction: float, tau: float
) -> None:
    flat, counts = np.array([x for response in values for x in response]), np.array(list(map(len, values)))
    rule = Rule({"a": NormalizationFit(0.0, 1.0, 9, -4.0)}, mean, policy, 0.01, sentence_fraction=fraction)
    scores = apply_rule(rule, {"a": flat}, counts)
    mean_only = apply_rule(replace(rule, sentence_fraction=None), {"a": flat}, counts)
    one_by_one = apply_rule(rule, {"a": flat}, np.ones(len(flat), dtype=np.int64))
    flagged = np.array([part.any() for part in np.split(scores.response_ceiling <= tau, np.cumsum(counts)[:-1])])
    assert ((scores.response <= tau) == ((mean_only.response <= tau) | flagged)).all()
    assert np.allclose(one_by_one.sentence_positive, scores.response_ceiling * fraction)
    assert np.isposinf(mean_only.response_ceiling).all()


@given(
    values=st.lists(st.lists(st.floats(-4, 4) | st.just(NAN), min_size=1, max_size=6), min_size=1, max_size=5),
    mean=st.sampled_from(Mean),
    policy=st.sampled_from(POSITIVE),
    fraction=st.none() | st.floats(0.05, 1),
    data=st.data(),
)
def test_a_state_depends_on_the_sentence_only_and_a_supported_response_has_no_flagged_sentence(
    values: list[list[float]], mean: Mean, policy: PositivityPolicy, fraction: float | None, data: st.DataObject
) -> None:
    flat, counts = np.array([x for response in values for x in response]), np.array(list(map(len, values)))
    scores = apply_rule(
        Rule({"a": NormalizationFit(0.0, 1.0, 9, -4.0)}, mean, policy, 0.01, sentence_fraction=fraction), {"a": flat}, counts
    )
    # A quantile is a response's own score: the mean of a single sentence may differ from it by a rounding error.
    tau = data.draw(st.floats(0.01, 1) | st.sampled_from([x for x in scores.response if not math.isnan(x)] or [0.5]))
    states = classify_sentences(scores, tau, flat > 3).to_pylist()
    assert [state is None for state in states] == np.isnan(flat).tolist()
    of_value = {value: state for value, state in zip(flat, states, strict=True) if state}
    assert all(of_value[value] == state for value, state in zip(flat, states, strict=True) if state)
    order = ["flagged", "doubtful", "supported"]
    ranks = [order.index(state) for value, state in sorted(of_value.items()) if value <= 3]
    assert ranks == sorted(ranks)
    assert all(state == "doubtful" for state, value in zip(states, flat, strict=True) if value > 3 and state != "flagged")
    flags = [state == "flagged" for state in states]
    by_response = [part.any() for part in np.split(np.array(flags), np.cumsum(counts)[:-1])]
    assert all(is_flagged <= (score <= tau) for is_flagged, score in zip(by_response, scores.response, strict=True))
    assert fraction is not None or not any(flags)
    assert "flagged" not in classify_sentences(scores, NAN, flat > 3).to_pylist()


@given(
    response=st.lists(st.floats(-4, 4), min_size=1, max_size=5),
    padding=st.lists(st.floats(-4, 4), max_size=40),
    order=st.randoms(use_true_random=False),
    tau=st.floats(0.01, 1),
)
def test_added_sentences_do_not_outweigh_a_flagged_sentence(
    response: list[float], padding: list[float], order: Random, tau: float
) -> None:
    rule = Rule({"a": NormalizationFit(0.0, 1.0, 9, -4.0)}, Mean.HARMONIC, PositivityPolicy.CDF, 0.01, sentence_fraction=0.5)
    alone = apply_rule(rule, {"a": np.array(response)}, np.array([len(response)]))
    padded = [*response, *padding]
    order.shuffle(padded)
    after = apply_rule(rule, {"a": np.array(padded)}, np.array([len(padded)]))
    if (alone.response_ceiling <= tau).any():
        assert after.response[0] <= tau


@given(
    value=st.floats(-4, 4),
    policy=st.sampled_from(PositivityPolicy),
    fraction=st.none() | st.floats(0.05, 1),
    tau=st.floats(0.02, 1),
)
def test_a_sentence_is_at_a_limit_exactly_if_its_score_after_the_policy_is(
    value: float, policy: PositivityPolicy, fraction: float | None, tau: float
) -> None:
    mean = Mean.MIN if policy is PositivityPolicy.NONE else Mean.HARMONIC
    rule = Rule({"a": NormalizationFit(0.0, 1.0, 9, -4.0)}, mean, policy, 0.01, sentence_fraction=fraction)
    scores = apply_rule(rule, {"a": np.array([value])}, np.array([1]))
    for limit, cut in zip(find_sentence_limits(rule, tau), (scores.response_ceiling, scores.sentence_positive), strict=True):
        is_close = math.isclose(cut[0], tau, rel_tol=1e-9) or math.isclose(value, limit, abs_tol=1e-9)
        assert is_close or (value <= limit) == (cut[0] <= tau) or (fraction is None and limit == -math.inf)
