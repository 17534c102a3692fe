"""What a cascade gains and costs: quality against the share of responses that the judge is asked about, by labels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ragassay.jobs.evaluation.labelled import Labelled
from ragassay.jobs.second_pass.escalate.written import tokens_of
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import Measure, aurocs, interval, of_both, resampling_weights
from ragassay.pipeline.cascade.choose import round_down
from ragassay.pipeline.cascade.config import UNCERTAINTY
from ragassay.pipeline.members import ValueKind
from ragassay.schemas.manifest import Manifest

SHARES = tuple(step / 20 for step in range(21))
SEEDS = 20
RANDOM = "random"
CASCADE_METRICS = ("balanced_accuracy", "f1_hallucinated", "auroc")


@dataclass(frozen=True)
class Point:
    """One share.

    Attributes:
        share: Of the responses, rounded down to whole ones, that the judge is asked about.
        asked: How many these are.
        tokens: Tokens that the judge took for them, reused ones among them.
        measures: Metric -> its value, with the interval of paired resamples: CASCADE_METRICS.
    """

    share: float
    asked: int
    tokens: int
    measures: dict[str, Measure]


@dataclass(frozen=True)
class Cascade:
    """Quality against cost, from never to always.

    Attributes:
        judge: Who is asked.
        when: The order in which it is asked: uncertainty, or a member.
        rows: Labelled responses with an ensemble score and the judge's.
        labelled: Those with an ensemble score, whether or not the judge was asked.
        points: One a share of `rows`, in that order.
        orders: Order (uncertainty, the members, random in the mean over seeds) -> metric -> its value at each share.
        enough: Metric -> the smallest share from which on no larger one is better beyond the noise: of no paired difference to
            it does the 95 % interval lie above 0; null without resamples.
    """

    judge: str
    when: str
    rows: int
    labelled: int
    points: list[Point]
    orders: dict[str, dict[str, list[float]]]
    enough: dict[str, float | None]


def cascade_margins(rows: Labelled, below: float) -> Floats:
    """How far each response lies from the threshold of whoever decided it, ensemble or judge, in its standard deviations:
    (value - threshold) / sd. Nothing more puts the scales together: AUROC of it is rough."""
    asked = ~np.isnan(rows.judge)
    ensemble = _scaled(rows.score, rows.thresholds)
    return np.where(asked, _scaled(rows.judge, np.full(len(asked), below)), ensemble)


def cascade_curve(output: Folder, manifest: Manifest, rows: Labelled, resamples: int) -> Cascade | None:
    """Draw it.

    Args:
        output: The output folder, escalated.
        manifest: Its manifest.
        rows: Labelled responses with a score.
        resamples: Bootstrap resamples of whole items; 0 leaves intervals out.

    Returns:
        The curve; None where no labelled response has a judge's value, or those that have are of one class.
    """
    there = ~np.isnan(rows.judge)
    done = next((run.escalation for run in reversed(manifest.runs) if run.escalation), None)
    good = rows.good[there]
    if manifest.judge is None or done is None or not good.any() or good.all():
        return None
    contest = _Contest(rows, there, manifest.judge.flags_below)
    weights = _weights(rows.groups[there], good, resamples)
    orders = _orders(rows, there, manifest)
    when = done.when if done.when in orders else UNCERTAINTY
    values = {name: _curve(contest, orders[name], weights if name == when else weights[:1]) for name in orders}
    values[RANDOM] = _at_random(contest, len(good))
    tokens = _tokens(output, rows.keys[there])
    points = []
    for number, share in enumerate(SHARES):
        size = round_down(share, len(good))
        measures = {name: Measure(float(v[number, 0]), *interval(v[number, 1:])) for name, v in values[when].items()}
        points.append(Point(share, size, int(tokens[orders[when][:size]].sum()), measures))
    return Cascade(
        judge=manifest.judge.name,
        when=when,
        rows=len(good),
        labelled=len(there),
        points=points,
        orders={name: {metric: v[:, 0].tolist() for metric, v in curve.items()} for name, curve in values.items()},
        enough={metric: _enough(v[:, 1:]) for metric, v in values[when].items()},
    )


class _Contest:
    """Labels, and what ensemble and judge say of the same responses."""

    def __init__(self, rows: Labelled, there: Bools, below: float) -> None:
        self.good = rows.good[there]
        score, tau, judge = rows.score[there], rows.thresholds[there], rows.judge[there]
        self.passed = score > tau, judge >= below
        self.margins = _scaled(score, tau), _scaled(judge, np.full(len(judge), below))

    def measure(self, asked: Bools, weights: Floats) -> dict[str, Floats]:
        """Each metric in each resample, where the judge decides those that it is asked about."""
        passed = np.where(asked, self.passed[1], self.passed[0])
        ups, downs = weights @ self.good, weights @ ~self.good
        caught, alarms = weights @ (~self.good & ~passed), weights @ (self.good & ~passed)
        return {
            "balanced_accuracy": (1 - alarms / ups + caught / downs) / 2,
            "f1_hallucinated": 2 * caught / (caught + alarms + downs),
            "auroc": aurocs(np.where(asked, self.margins[1], self.margins[0]), self.good, weights),
        }


def _scaled(values: Floats, thresholds: Floats) -> Floats:
    spread = float(np.nanstd(values))
    margins: Floats = (values - thresholds) / (spread if spread > 0 else 1.0)
    return margins


def _weights(groups: Ints, good: Bools, resamples: int) -> Floats:
    """The rows as they are, then resamples of whole items that hold both classes: array (1 + resamples, rows)."""
    numbers = np.unique(groups, return_inverse=True)[1]
    drawn = resampling_weights(numbers, resamples, 0) if resamples else np.empty((0, len(good)))
    return np.concatenate([np.ones((1, len(good))), of_both(drawn, good)])


def _orders(rows: Labelled, there: Bools, manifest: Manifest) -> dict[str, Ints]:
    """Order -> places of the rows, the first to be asked about first."""
    certainty = {UNCERTAINTY: np.abs(rows.score - rows.thresholds), **dict(_responses(rows, manifest))}
    return {name: np.lexsort((rows.keys[there], values[there])) for name, values in certainty.items()}


def _responses(rows: Labelled, manifest: Manifest) -> Iterator[tuple[str, Floats]]:
    """Each member's value of the responses, as `Value.of_response` has it."""
    starts = np.cumsum(rows.counts) - rows.counts
    members = manifest.last_fit.members if manifest.last_fit else {}
    for name, member in members.items():
        of_sentences = ValueKind(member.value).is_from_logprobs
        yield name, np.minimum.reduceat(rows.values[name], starts) if of_sentences else rows.whole[name]


def _curve(contest: _Contest, order: Ints, weights: Floats) -> dict[str, Floats]:
    """Metric -> array (shares, resamples)."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    found = [contest.measure(rank < round_down(share, len(order)), weights) for share in SHARES]
    return {metric: np.stack([at[metric] for at in found]) for metric in CASCADE_METRICS}


def _at_random(contest: _Contest, rows: int) -> dict[str, Floats]:
    one = np.ones((1, rows))
    curves = [_curve(contest, np.random.default_rng(seed).permutation(rows), one) for seed in range(SEEDS)]
    return {metric: np.mean([curve[metric] for curve in curves], axis=0) for metric in CASCADE_METRICS}


def _enough(values: Floats) -> float | None:
    """See `Cascade.enough`; array (shares, resamples)."""
    if not values.shape[1]:
        return None
    for number, share in enumerate(SHARES):
        rises = np.quantile(values[number + 1 :] - values[number], 0.025, axis=1) if number + 1 < len(SHARES) else np.array([])
        if (rises <= 0).all():
            return share
    return None


def _tokens(output: Folder, keys: Ints) -> Ints:
    known, tokens = tokens_of(output)
    if not len(known):
        return np.zeros(len(keys), dtype=np.int64)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, tokens[places], 0)


def shares_of(found: Cascade, metric: str) -> Mapping[str, list[float]]:
    """Order -> a metric's value at each share; the cascade's own first."""
    return {found.when: found.orders[found.when][metric]} | {name: curve[metric] for name, curve in found.orders.items()}
