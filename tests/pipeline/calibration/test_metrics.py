"""Metrics equal those of scikit-learn, also in resamples, and intervals cover the true value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from ragassay.pipeline.calibration.metrics import (
    METRICS,
    MIN_RECALL,
    _compute_resampled_metrics,
    compute_metrics,
    count_positives,
    draw_resampling_weights,
    number_groups,
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
    supported = rng.random(size) < draw(st.floats(0.1, 0.9))
    supported[0], supported[1] = True, False
    return scores.astype(np.float64), supported


@given(scored_rows())
def test_metrics_equal_those_of_scikit_learn(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, supported = rows
    passed = scores > np.median(scores)
    values = compute_metrics(scores, supported, np.arange(len(scores)), passed=passed, resamples=0)
    assert set(values) == set(METRICS)
    assert values["auroc"].value == pytest.approx(metrics.roc_auc_score(supported, scores))
    assert values["average_precision"].value == pytest.approx(metrics.average_precision_score(supported, scores))
    assert values["average_precision_hallucinated"].value == pytest.approx(metrics.average_precision_score(~supported, -scores))
    assert values["balanced_accuracy"].value == pytest.approx(metrics.balanced_accuracy_score(supported, passed))
    cuts = [-np.inf, *np.unique(scores)]
    assert values["best_f1"].value == pytest.approx(max(metrics.f1_score(supported, scores > c) for c in cuts))
    assert values["best_f1_hallucinated"].value == pytest.approx(max(metrics.f1_score(~supported, scores <= c) for c in cuts))
    allowed = [
        metrics.precision_score(supported, scores > c)
        for c in cuts
        if metrics.recall_score(supported, scores > c) >= MIN_RECALL and (scores > c).any()
    ]
    assert values["best_precision"].value == pytest.approx(max(allowed))


@given(scored_rows())
def test_thresholds_reach_their_metric(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, supported = rows
    values = compute_metrics(scores, supported, np.arange(len(scores)), resamples=0)
    taus = {name: values[name].threshold for name in ("best_f1", "best_f1_hallucinated", "best_precision")}
    assert all(tau is not None and np.isfinite(tau) for tau in taus.values())
    assert metrics.f1_score(supported, scores > taus["best_f1"]) == pytest.approx(values["best_f1"].value)
    assert metrics.f1_score(~supported, scores <= taus["best_f1_hallucinated"]) == pytest.approx(
        values["best_f1_hallucinated"].value
    )
    assert metrics.precision_score(supported, scores > taus["best_precision"]) == pytest.approx(values["best_precision"].value)


@given(scored_rows(), st.integers(0, 1000))
def test_metrics_of_a_resample_equal_those_of_scikit_learn_with_weights(rows: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    scores, supported = rows
    passed = scores > 0
    weights = draw_resampling_weights(np.arange(len(scores)), 4, seed)
    kept = weights[(weights @ supported > 0) & (weights @ ~supported > 0)]
    values = _compute_resampled_metrics(scores, supported, passed, weights)
    for i, w in enumerate(kept):
        assert values["auroc"][i] == pytest.approx(metrics.roc_auc_score(supported, scores, sample_weight=w))
        assert values["average_precision"][i] == pytest.approx(
            metrics.average_precision_score(supported, scores, sample_weight=w)
        )
        assert values["balanced_accuracy"][i] == pytest.approx(
            metrics.balanced_accuracy_score(supported, passed, sample_weight=w)
        )
        assert values["average_precision_hallucinated"][i] == pytest.approx(
            metrics.average_precision_score(~supported, -scores, sample_weight=w)
        )
        copies = np.repeat(np.arange(len(scores)), w.astype(int))
        repeated = compute_metrics(scores[copies], supported[copies], copies, resamples=0)
        for name in ("best_f1", "best_f1_hallucinated", "best_precision"):
            assert values[name][i] == pytest.approx(repeated[name].value)


@pytest.mark.skipif(not hasattr(metrics, "confusion_matrix_at_thresholds"), reason="needs scikit-learn 1.8")
@given(scored_rows())
def test_counts_equal_the_confusion_matrix_of_scikit_learn(rows: tuple[np.ndarray, np.ndarray]) -> None:
    scores, supported = rows
    tp, fp = count_positives(scores, supported, np.ones((1, len(scores))))
    _, their_fp, _, their_tp, _ = metrics.confusion_matrix_at_thresholds(supported, scores)
    assert tp[0] == pytest.approx(their_tp) and fp[0] == pytest.approx(their_fp)


def test_whole_groups_are_resampled() -> None:
    groups = number_groups(["x", "y", "x", "z", "y"])
    weights = draw_resampling_weights(groups, 200, 0)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert {int(w) for w in weights[:, [0, 1, 3]].sum(axis=1)} == {3}


def test_intervals_cover_the_true_auroc_about_as_often_as_stated() -> None:
    rng = np.random.default_rng(0)
    truth, covered = 0.7602, 0  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt 2)
    for _ in range(200):
        supported = rng.random(150) < 0.5
        auroc = compute_metrics(rng.normal(supported.astype(float), 1), supported, np.arange(150), resamples=300)["auroc"]
        assert auroc.low is not None and auroc.high is not None and auroc.low <= auroc.value <= auroc.high
        covered += auroc.low <= truth <= auroc.high
    assert 180 <= covered <= 199


def test_copies_within_a_group_do_not_narrow_the_interval() -> None:
    rng = np.random.default_rng(1)
    supported = rng.random(100) < 0.5
    scores = rng.normal(supported.astype(float), 1)
    alone = compute_metrics(scores, supported, np.arange(100), resamples=500)["auroc"]
    copies = np.repeat(np.arange(100), 10)
    together = compute_metrics(scores[copies], supported[copies], copies, resamples=500)["auroc"]
    assert together.value == pytest.approx(alone.value)
    assert alone.low is not None and alone.high is not None and together.low is not None and together.high is not None
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.15)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_thresholds_are_between_neighboring_scores(values: list[float]) -> None:
    scores = np.array(values)
    scores = np.append(scores, np.nextafter(scores[0], np.inf))
    for score in scores:
        assert set(scores[scores > threshold_below(scores, score)]) == set(scores[scores >= score])
        assert set(scores[scores <= threshold_above(scores, score)]) == set(scores[scores <= score])
