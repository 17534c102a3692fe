"""Choose a rule (mean, policy and weights) by labels; keep the stored one unless another is clearly better."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ragassay.jobs.evaluation.labeled_responses import LabeledResponses
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import compute_auroc
from ragassay.pipeline.calibration.weights import fit_member_weights
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy, list_valid_pairs
from ragassay.pipeline.verdict.ensemble import NormalizationFit
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.manifest import FitRecord, Manifest

FOLDS = 5
SEED = 20250622
MIN_STANDARD_ERRORS = 3.5
"""A candidate replaces the stored rule if its AUROC over held-out folds is better by this many standard errors."""


@dataclass(frozen=True)
class RuleCandidate:
    """A candidate rule.

    Attributes:
        rule: The rule.
        fits_weights: Whether its weights are fitted to the labeled rows.
    """

    rule: Rule
    fits_weights: bool


def split_folds(rows: LabeledResponses, selected: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Split rows into folds of whole items: row numbers to fit on and to measure on. Folds with one class on a side are
    left out.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    row_numbers, is_correct = np.flatnonzero(selected), rows.is_correct[selected]
    size = min(FOLDS, len(np.unique(rows.groups[selected])), int(is_correct.sum()), int((~is_correct).sum()))
    if size < 2:
        return
    splitter = StratifiedGroupKFold(size, shuffle=True, random_state=SEED)
    for train, test in splitter.split(row_numbers, is_correct, rows.groups[selected]):
        if all(0 < is_correct[side].sum() < len(side) for side in (train, test)):
            yield row_numbers[train], row_numbers[test]


def choose_rule(rows: LabeledResponses, stored_rule: Rule, selected: Bools) -> RuleCandidate:
    """Return the candidate with the best AUROC over held-out folds if it clearly beats the stored rule, else the stored
    rule.
    """
    folds = list(split_folds(rows, selected))
    if len(folds) < 2:
        return RuleCandidate(stored_rule, False)
    has_several_members = len(rows.sentence_values) > 1
    # Weights are fitted to z-scores, which do not depend on mean and policy, so each fold fits them once.
    weights = [_fit_member_weights(stored_rule, rows, train) if has_several_members else None for train, _ in folds]

    def measure_folds(choice: RuleCandidate) -> Floats:
        aurocs = []
        scores = apply_rule(choice.rule, rows.sentence_values, rows.sentence_counts).response
        for (_, test), fitted_weights in zip(folds, weights, strict=True):
            if choice.fits_weights:
                scores = apply_rule(
                    replace(choice.rule, weights=fitted_weights), rows.sentence_values, rows.sentence_counts
                ).response
            aurocs.append(compute_auroc(scores[test], rows.is_correct[test]))
        return np.array(aurocs)

    stored_auroc = measure_folds(RuleCandidate(stored_rule, False))
    best, best_gain = RuleCandidate(stored_rule, False), 0.0
    for mean, policy in list_valid_pairs(stored_rule.sentence_fraction is not None):
        for fitted_weights in (False, True) if has_several_members else (False,):
            choice = RuleCandidate(replace(stored_rule, mean=mean, positive=policy), fitted_weights)
            gains = measure_folds(choice) - stored_auroc
            if gains.mean() > max(best_gain, MIN_STANDARD_ERRORS * gains.std(ddof=1) / np.sqrt(len(gains))):
                best, best_gain = choice, float(gains.mean())
    return best


def fit_rule(candidate: RuleCandidate, rows: LabeledResponses, selected: Ints | Bools) -> Rule:
    """Return the candidate's rule, with weights fitted to the selected rows if it asks for them."""
    return (
        replace(candidate.rule, weights=_fit_member_weights(candidate.rule, rows, selected))
        if candidate.fits_weights
        else candidate.rule
    )


def _fit_member_weights(rule: Rule, rows: LabeledResponses, selected: Ints | Bools) -> dict[str, float]:
    starts = np.cumsum(rows.sentence_counts) - rows.sentence_counts
    z = [np.fmin.reduceat((v - rule.fits[name].mu) / rule.fits[name].sigma, starts) for name, v in rows.sentence_values.items()]
    # A detector without a value is no evidence either way, like a z-score of 0.
    weights = fit_member_weights(np.nan_to_num(np.stack(z, axis=1))[selected], rows.is_correct[selected])
    return dict(zip(rows.sentence_values, map(float, weights), strict=True))


def draw_half(rows: LabeledResponses) -> Bools:
    """Select half of the items at random."""
    items = np.unique(rows.groups)
    half = np.random.default_rng(SEED).permutation(items)[: len(items) // 2]
    return np.isin(rows.groups, half)


def score_by_other_half(rows: LabeledResponses, stored_rule: Rule) -> Floats:
    """Score each response by a rule that was chosen on the other half of the items.

    The rules of the two halves may use different scales, so each score is its rank within its half.

    Returns:
        A score per response, 0 to 1; NaN if the other half has one class only.
    """
    from scipy.stats import rankdata

    half = draw_half(rows)
    ranks = np.full(len(half), np.nan)
    for fitting in (half, ~half):
        if 0 < rows.is_correct[fitting].sum() < fitting.sum():
            candidate = choose_rule(rows, stored_rule, fitting)
            scores = apply_rule(fit_rule(candidate, rows, fitting), rows.sentence_values, rows.sentence_counts).response
            ranks[~fitting] = rankdata(scores[~fitting]) / (~fitting).sum()
    return ranks


def read_stored_rule(manifest: Manifest, fits: Mapping[str, NormalizationFit]) -> Rule:
    """Return the rule of the latest verdicts, with these mu and sigma."""
    record = require_fit(manifest)
    return Rule(fits, Mean(record.mean), PositivityPolicy(record.positive), record.epsilon, record.weights, record.sentence)


def require_fit(manifest: Manifest) -> FitRecord:
    """Return the fit of the latest verdicts."""
    assert manifest.last_fit, "callers have checked that rows have scores"
    return manifest.last_fit
