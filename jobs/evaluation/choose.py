"""Choose a rule by labels: mean, policy and weights, where another than the stored one clearly helps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ragassay.jobs.evaluation.labelled import Labelled
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import auroc
from ragassay.pipeline.calibration.weights import fit_weights
from ragassay.pipeline.verdict.aggregate import Mean, Positive, legal_pairs
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.manifest import FitRecord, Manifest

FOLDS = 5
SEED = 20250622
HELPS = 3.5
"""Another rule replaces the stored one if its AUROC over held-out folds is better by so many standard errors."""


@dataclass(frozen=True)
class Choice:
    """A rule to try; with `fitted`, its weights are fitted to the rows at hand."""

    rule: Rule
    fitted: bool


def folds_of(rows: Labelled, mine: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Row numbers to fit on and to measure on, whole items together; only folds with both classes on both sides."""
    from sklearn.model_selection import StratifiedGroupKFold

    places, good = np.flatnonzero(mine), rows.good[mine]
    size = min(FOLDS, len(np.unique(rows.groups[mine])), int(good.sum()), int((~good).sum()))
    if size < 2:
        return
    splitter = StratifiedGroupKFold(size, shuffle=True, random_state=SEED)
    for train, test in splitter.split(places, good, rows.groups[mine]):
        if all(0 < good[part].sum() < len(part) for part in (train, test)):
            yield places[train], places[test]


def choose(rows: Labelled, stored: Rule, mine: Bools) -> Choice:
    """The rule with the best AUROC over held-out folds of these rows, if it beats the stored one clearly; else that."""
    folds = list(folds_of(rows, mine))
    if len(folds) < 2:
        return Choice(stored, False)
    several = len(rows.values) > 1
    # Weights are fitted to z-scores, which are the same under every mean and policy: once a fold is enough.
    weights = [_weights(stored, rows, train) if several else None for train, _ in folds]

    def over_folds(choice: Choice) -> Floats:
        found = []
        scores = apply_rule(choice.rule, rows.values, rows.counts).response
        for (_, test), fitted in zip(folds, weights, strict=True):
            if choice.fitted:
                scores = apply_rule(replace(choice.rule, weights=fitted), rows.values, rows.counts).response
            found.append(auroc(scores[test], rows.good[test]))
        return np.array(found)

    base = over_folds(Choice(stored, False))
    best, gain = Choice(stored, False), 0.0
    for mean, policy in legal_pairs(stored.sentence is not None):
        for fitted in (False, True) if several else (False,):
            choice = Choice(replace(stored, mean=mean, positive=policy), fitted)
            rise = over_folds(choice) - base
            if rise.mean() > max(gain, HELPS * rise.std(ddof=1) / np.sqrt(len(rise))):
                best, gain = choice, float(rise.mean())
    return best


def fitted_rule(choice: Choice, rows: Labelled, mine: Ints | Bools) -> Rule:
    """The rule, with weights fitted to these rows where it asks for that."""
    return replace(choice.rule, weights=_weights(choice.rule, rows, mine)) if choice.fitted else choice.rule


def _weights(rule: Rule, rows: Labelled, mine: Ints | Bools) -> dict[str, float]:
    starts = np.cumsum(rows.counts) - rows.counts
    z = [np.fmin.reduceat((v - rule.fits[name].mu) / rule.fits[name].sigma, starts) for name, v in rows.values.items()]
    # A detector without a value says nothing either way, which is what a z-score of 0 says.
    weights = fit_weights(np.nan_to_num(np.stack(z, axis=1))[mine], rows.good[mine])
    return dict(zip(rows.values, map(float, weights), strict=True))


def half_of(rows: Labelled) -> Bools:
    """Half of the items, at random."""
    items = np.unique(rows.groups)
    drawn = np.random.default_rng(SEED).permutation(items)[: len(items) // 2]
    return np.isin(rows.groups, drawn)


def calibrated_on_other_half(rows: Labelled, stored: Rule) -> Floats:
    """Scores of each response by a rule that was chosen on the other half of the items.

    The two halves may have got rules with scores of different scales, so each score is given as its rank among its half.

    Returns:
        One a response, 0 to 1; NaN where the other half has one class only.
    """
    from scipy.stats import rankdata

    half = half_of(rows)
    found = np.full(len(half), np.nan)
    for fitting in (half, ~half):
        if 0 < rows.good[fitting].sum() < fitting.sum():
            choice = choose(rows, stored, fitting)
            scores = apply_rule(fitted_rule(choice, rows, fitting), rows.values, rows.counts).response
            found[~fitting] = rankdata(scores[~fitting]) / (~fitting).sum()
    return found


def stored_rule(manifest: Manifest, fits: Mapping[str, Fit]) -> Rule:
    """The rule of the last verdicts, with these mu and sigma."""
    record = stored_fit(manifest)
    return Rule(fits, Mean(record.mean), Positive(record.positive), record.epsilon, record.weights, record.sentence)


def stored_fit(manifest: Manifest) -> FitRecord:
    """How the last verdicts were made."""
    assert manifest.last_fit, "rows without a score were refused before"
    return manifest.last_fit
