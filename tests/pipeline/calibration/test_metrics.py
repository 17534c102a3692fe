"""Our metrics are scikit-learn's, and the intervals come from the same numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from ragassay.pipeline.calibration.metrics import (
    METRICS,
    MIN_RECALL,
    _metrics_of,
    counts_at_thresholds,
    group_numbers,
    measure,
    resampling_weights,
    threshold_above,
    threshold_below,
)


@st.composite
def scored_rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Scores, with ties, and labels of both classes."""
    size = draw(st.integers(2, 60))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 5, size) / 4 if draw(st.booleans()) else rng.normal(size=size)
    good = rng.random(size) < draw(st.floats(0.1, 0.9))
    good[0], good[1] = True, False
    return scores.astype(np.float64), good


@given(scored_rows())
def test_metrics_equal_scikit_learn(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, good = rows
    passed = scores > np.median(scores)
    got = measure(scores, good, np.arange(len(scores)), passed=passed, resamples=0)
    assert set(got) == set(METRICS)
    assert got["auroc"].value == pytest.approx(metrics.roc_auc_score(good, scores))
    assert got["average_precision"].value == pytest.approx(metrics.average_precision_score(good, scores))
    assert got["average_precision_hallucinated"].value == pytest.approx(metrics.average_precision_score(~good, -scores))
    assert got["balanced_accuracy"].value == pytest.approx(metrics.balanced_accuracy_score(good, passed))
    cuts = [-np.inf, *np.unique(scores)]
    assert got["best_f1"].value == pytest.approx(max(metrics.f1_score(good, scores > c) for c in cuts))
    assert got["best_f1_hallucinated"].value == pytest.approx(max(metrics.f1_score(~good, scores <= c) for c in cuts))
    allowed = [
        metrics.precision_score(good, scores > c)
        for c in cuts
        if metrics.recall_score(good, scores > c) >= MIN_RECALL and (scores > c).any()
    ]
    assert got["best_precision"].value == pytest.approx(max(allowed))


@given(scored_rows())
def test_thresholds_give_what_they_stand_beside(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, good = rows
    got = measure(scores, good, np.arange(len(scores)), resamples=0)
    taus = {name: got[name].threshold for name in ("best_f1", "best_f1_hallucinated", "best_precision")}
    assert all(tau is not None and np.isfinite(tau) for tau in taus.values())
    assert metrics.f1_score(good, scores > taus["best_f1"]) == pytest.approx(got["best_f1"].value)
    assert metrics.f1_score(~good, scores <= taus["best_f1_hallucinated"]) == pytest.approx(got["best_f1_hallucinated"].value)
    assert metrics.precision_score(good, scores > taus["best_precision"]) == pytest.approx(got["best_precision"].value)


@given(scored_rows(), st.integers(0, 1000))
def test_a_resample_equals_scikit_learn_with_weights(rows: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    scores, good = rows
    passed = scores > 0
    weights = resampling_weights(np.arange(len(scores)), 4, seed)
    kept = weights[(weights @ good > 0) & (weights @ ~good > 0)]
    got = _metrics_of(scores, good, passed, weights)
    for i, w in enumerate(kept):
        assert got["auroc"][i] == pytest.approx(metrics.roc_auc_score(good, scores, sample_weight=w))
        assert got["average_precision"][i] == pytest.approx(metrics.average_precision_score(good, scores, sample_weight=w))
        assert got["balanced_accuracy"][i] == pytest.approx(metrics.balanced_accuracy_score(good, passed, sample_weight=w))
        assert got["average_precision_hallucinated"][i] == pytest.approx(
            metrics.average_precision_score(~good, -scores, sample_weight=w)
        )
        copies = np.repeat(np.arange(len(scores)), w.astype(int))
        repeated = measure(scores[copies], good[copies], copies, resamples=0)
        for name in ("best_f1", "best_f1_hallucinated", "best_precision"):
            assert got[name][i] == pytest.approx(repeated[name].value)


@given(scored_rows())
def test_counts_equal_scikit_learns_confusion_matrix(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, good = rows
    tp, fp = counts_at_thresholds(scores, good, np.ones((1, len(scores))))
    _, their_fp, _, their_tp, _ = metrics.confusion_matrix_at_thresholds(good, scores)
    assert tp[0] == pytest.approx(their_tp) and fp[0] == pytest.approx(their_fp)


def test_whole_groups_are_resampled() -> None:
    groups = group_numbers(["x", "y", "x", "z", "y"])
    weights = resampling_weights(groups, 200, 0)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert {int(w) for w in weights[:, [0, 1, 3]].sum(axis=1)} == {3}


def test_intervals_cover_the_true_auroc_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    truth, covered = 0.7602, 0  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt 2)
    for _ in range(200):
        good = rng.random(150) < 0.5
        auroc = measure(rng.normal(good.astype(float), 1), good, np.arange(150), resamples=300)["auroc"]
        assert auroc.low is not None and auroc.high is not None and auroc.low <= auroc.value <= auroc.high
        covered += auroc.low <= truth <= auroc.high
    assert 180 <= covered <= 199


def test_groups_that_agree_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    good = rng.random(100) < 0.5
    scores = rng.normal(good.astype(float), 1)
    alone = measure(scores, good, np.arange(100), resamples=500)["auroc"]
    copies = np.repeat(np.arange(100), 10)
    together = measure(scores[copies], good[copies], copies, resamples=500)["auroc"]
    assert together.value == pytest.approx(alone.value)
    assert alone.low is not None and alone.high is not None and together.low is not None and together.high is not None
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.15)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_thresholds_lie_between_neighbours(values: list[float]) -> None:
    scores = np.array(values)
    scores = np.append(scores, np.nextafter(scores[0], np.inf))
    for score in scores:
        assert set(scores[scores > threshold_below(scores, score)]) == set(scores[scores >= score])
        assert set(scores[scores <= threshold_above(scores, score)]) == set(scores[scores <= score])
