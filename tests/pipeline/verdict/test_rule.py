"""Members that have nothing to say of a sentence, by hand."""

import math

import numpy as np
import pytest

from ragassay.pipeline.verdict.aggregate import Mean, Positive
from ragassay.pipeline.verdict.moments import moments_of
from ragassay.pipeline.verdict.normalize import Fit, ensemble, fit_detector
from ragassay.pipeline.verdict.rule import Rule, apply_rule

NAN = math.nan
FITS = {"a": Fit(0.0, 1.0, 4, -9.0), "b": Fit(1.0, 2.0, 4, -9.0)}
VALUES = {"a": np.array([1.0, NAN, 3.0, NAN]), "b": np.array([3.0, 5.0, NAN, NAN])}


def test_a_member_without_a_value_leaves_its_weight_to_the_others() -> None:
    assert ensemble(VALUES, FITS) == pytest.approx([(1 + 1) / 2, 2.0, 3.0, NAN], nan_ok=True)
    weighted = ensemble(VALUES, FITS, {"a": 0.75, "b": 0.25})
    assert weighted == pytest.approx([0.75 * 1 + 0.25 * 1, 2.0, 3.0, NAN], nan_ok=True)


def test_a_member_beside_the_ensemble_has_no_say() -> None:
    assert ensemble(VALUES, FITS, {"a": 1.0, "b": 0.0}) == pytest.approx([1.0, NAN, 3.0, NAN], nan_ok=True)


def test_a_sentence_without_a_score_is_left_out_of_the_mean() -> None:
    rule = Rule(FITS, Mean.ARITHMETIC, Positive.NONE, 0.01)
    scores = apply_rule(rule, VALUES, np.array([2, 1, 1]))
    assert scores.response == pytest.approx([1.5, 3.0, NAN], nan_ok=True)
    harmonic = apply_rule(Rule(FITS, Mean.HARMONIC, Positive.CLIP, 0.01), VALUES, np.array([4]))
    assert harmonic.response == pytest.approx([3 / (1 / 1 + 1 / 2 + 1 / 3)])


def test_a_detector_that_always_says_the_same_tells_nothing() -> None:
    fit = fit_detector(moments_of([1.0, 1.0]))
    assert ensemble({"d": np.array([1.0, 1.0])}, {"d": fit}) == pytest.approx([0.0, 0.0])
    assert fit_detector(moments_of([])).sigma == 1.0
    assert fit_detector(moments_of([0.0, 1.0])).sigma == 0.5
