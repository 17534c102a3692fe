"""How well scores tell supported responses from hallucinated ones: scikit-learn's metrics, with bootstrap intervals.

The positive class is "supported" (the paper's "correct"), a response is taken for supported if its score is above a
threshold, and so precision is the share of correct responses among those that pass. Metrics that end in `_hallucinated`
take the other class as the positive one, as the published detectors do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats, Ints

METRICS = (
    "auroc",
    "average_precision",
    "average_precision_hallucinated",
    "best_f1",
    "best_f1_hallucinated",
    "best_precision",
    "balanced_accuracy",
)
CELLS = 4_000_000
"""Weights of resamples that are held at a time: 32 MB."""

MIN_RECALL = 0.5
"""The paper's condition on the best precision, so that one lucky row is not the answer."""


@dataclass(frozen=True)
class Measure:
    """One metric.

    Attributes:
        value: Its value, 0 to 1.
        low: Lower end of its bootstrap 95 % interval; null where no interval could be drawn.
        high: Upper end.
        threshold: tau where it is reached (supported if score > tau); null for a metric that has none.
    """

    value: float
    low: float | None = None
    high: float | None = None
    threshold: float | None = None


def measure(
    scores: Floats, good: Bools, groups: Ints, *, passed: Bools | None = None, resamples: int, seed: int = 0
) -> dict[str, Measure]:
    """All metrics of one score.

    Args:
        scores: A finite score a response, higher = better supported.
        good: Whether it is correct; both classes must be there.
        groups: Number of each response's item or context. Whole groups are resampled, because responses to one question
            over one context are not independent.
        passed: Whether a stored verdict let it pass; None leaves balanced_accuracy out.
        resamples: Bootstrap resamples; 0 leaves the intervals out.
        seed: Of the resampling.

    Returns:
        Metric -> its value, interval and threshold; the names are METRICS.
    """
    from sklearn import metrics

    precision, recall, thresholds = metrics.precision_recall_curve(good, scores)
    precision, recall = precision[:-1], recall[:-1]  # sklearn appends the point (1, 0), which no threshold gives
    f1 = _f1(precision, recall)
    allowed = np.where(recall >= MIN_RECALL, precision, -1.0)
    bad_precision, bad_recall, bad_thresholds = metrics.precision_recall_curve(~good, -scores)
    bad_f1 = _f1(bad_precision[:-1], bad_recall[:-1])
    values = {
        "auroc": (auroc(scores, good), None),
        "average_precision": (metrics.average_precision_score(good, scores), None),
        "average_precision_hallucinated": (metrics.average_precision_score(~good, -scores), None),
        "best_f1": (f1.max(), threshold_below(scores, thresholds[f1.argmax()])),
        "best_f1_hallucinated": (bad_f1.max(), threshold_above(scores, -bad_thresholds[bad_f1.argmax()])),
        "best_precision": (allowed.max(), threshold_below(scores, thresholds[allowed.argmax()])),
    }
    if passed is not None:
        values["balanced_accuracy"] = (metrics.balanced_accuracy_score(good, passed), None)
    spread = _resampled(scores, good, groups, passed, resamples, seed) if resamples else {}
    return {
        name: Measure(float(value), *interval(spread.get(name)), None if tau is None else float(tau))
        for name, (value, tau) in values.items()
    }


def auroc(scores: Floats, good: Bools) -> float:
    """Area under the ROC curve, from ranks: scikit-learn's value, without what its checks take in a search of hundreds."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # ties share the middle of their places
    ups = int(good.sum())
    return float((ranks[place][good].sum() - ups * (ups + 1) / 2) / (ups * (len(good) - ups)))


def threshold_below(scores: Floats, score: float) -> float:
    """tau that lets `score` and all above it pass: halfway to the next lower score."""
    lower = scores[scores < score]
    if not len(lower):
        return float(score - max(abs(score), 1.0) * 1e-9)
    return min(float((score + lower.max()) / 2), float(np.nextafter(score, -np.inf)))


def threshold_above(scores: Floats, score: float) -> float:
    """tau that flags `score` and all below it: halfway to the next higher score."""
    higher = scores[scores > score]
    return min(float((score + higher.min()) / 2), float(np.nextafter(higher.min(), -np.inf))) if len(higher) else float(score)


def group_numbers(keys: list[str]) -> Ints:
    """Number of each key among the different ones."""
    return np.unique(np.array(keys, dtype=object), return_inverse=True)[1].astype(np.int64)


def resampling_weights(groups: Ints, resamples: int, seed: int) -> Floats:
    """How often each row stands in each bootstrap resample of whole groups: array (resamples, rows)."""
    size = int(groups.max()) + 1
    drawn = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=resamples)
    return drawn[:, groups].astype(np.float64)


def resample_parts(groups: Ints, resamples: int, seed: int = 0) -> Iterator[Floats]:
    """The same, some resamples at a time, so that the arrays stay near 32 MB."""
    size = max(1, CELLS // len(groups))
    for start in range(0, resamples, size):
        yield resampling_weights(groups, min(size, resamples - start), seed + start)


def of_both(weights: Floats, good: Bools) -> Floats:
    """Those resamples that hold both classes."""
    return weights[(weights @ good > 0) & (weights @ ~good > 0)]


def aurocs(scores: Floats, good: Bools, weights: Floats) -> Floats:
    """AUROC in each resample: array (resamples,). Two scores in the same resamples can be compared pair by pair.

    Args:
        scores: A finite score a row.
        good: Whether it is positive.
        weights: Array (resamples, rows); both classes in each.
    """
    parts = [np.empty(0)]
    step = max(1, CELLS // len(scores))
    for start in range(0, len(weights), step):
        tp, fp = counts_at_thresholds(scores, good, weights[start : start + step])
        zero = np.zeros((len(tp), 1))
        tpr, fpr = (np.concatenate([zero, found / found[:, -1:]], axis=1) for found in (tp, fp))
        parts.append(np.trapezoid(tpr, fpr, axis=1))
    return np.concatenate(parts)


def counts_at_thresholds(scores: Floats, good: Bools, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted true and false positives at every distinct score, from the highest to the lowest.

    This is `sklearn.metrics.confusion_matrix_at_thresholds` for many sets of weights at once: the order of the scores is
    the same in all resamples, so one cumulative sum gives the counts of all of them.

    Args:
        scores: A score a row.
        good: Whether it is positive.
        weights: Array (resamples, rows).

    Returns:
        Two arrays (resamples, distinct scores): correct responses, and others, among those with at least that score.
    """
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    ordered = weights[:, order]
    return np.cumsum(ordered * good[order], axis=1)[:, last], np.cumsum(ordered * ~good[order], axis=1)[:, last]


def _resampled(scores: Floats, good: Bools, groups: Ints, passed: Bools | None, resamples: int, seed: int) -> dict[str, Floats]:
    """Every metric in every resample that holds both classes."""
    parts: dict[str, list[Floats]] = {}
    for weights in resample_parts(groups, resamples, seed):
        for name, values in _metrics_of(scores, good, passed, weights).items():
            parts.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in parts.items()}


def _metrics_of(scores: Floats, good: Bools, passed: Bools | None, weights: Floats) -> dict[str, Floats]:
    weights = of_both(weights, good)
    if not len(weights):
        return {}
    tp, fp = counts_at_thresholds(scores, good, weights)
    positives, negatives = tp[:, -1:], fp[:, -1:]
    recall = tp / positives
    precision = np.divide(tp, tp + fp, out=np.zeros_like(tp), where=tp + fp > 0)
    # Flagged is what lies below a score; the step before the highest score flags everything.
    zero = np.zeros_like(positives)
    hits = negatives - np.concatenate([zero, fp[:, :-1]], axis=1)
    alarms = positives - np.concatenate([zero, tp[:, :-1]], axis=1)
    bad_recall = hits / negatives
    bad_precision = np.divide(hits, hits + alarms, out=np.zeros_like(hits), where=hits + alarms > 0)
    fpr = np.concatenate([zero, fp / negatives], axis=1)
    tpr = np.concatenate([zero, recall], axis=1)
    found = {
        "auroc": np.trapezoid(tpr, fpr, axis=1),
        "average_precision": (np.diff(tpr, axis=1) * precision).sum(axis=1),
        "average_precision_hallucinated": (-np.diff(bad_recall, axis=1, append=0) * bad_precision).sum(axis=1),
        "best_f1": _f1(precision, recall).max(axis=1),
        "best_f1_hallucinated": _f1(bad_precision, bad_recall).max(axis=1),
        "best_precision": np.where(recall >= MIN_RECALL, precision, -1.0).max(axis=1),
    }
    if passed is not None:
        kept = (weights @ (good & passed)) / positives[:, 0]
        caught = (weights @ (~good & ~passed)) / negatives[:, 0]
        found["balanced_accuracy"] = (kept + caught) / 2
    return found


def _f1(precision: Floats, recall: Floats) -> Floats:
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)


def interval(values: Floats | None) -> tuple[float | None, float | None]:
    """Ends of the 95 % interval of resampled values; null where there are none."""
    if values is None or not len(values):
        return None, None
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
