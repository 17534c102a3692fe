"""`calibrate`: threshold, mean, policy, weights and probabilities that fit the labels, as a calibration."""

import secrets
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.choose import FOLDS, SEED, Choice, choose, fitted_rule, folds_of, half_of, stored_rule
from ragassay.jobs.evaluation.labelled import Labelled, fits_of_all, load_labelled, member_values_of
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.finalize import compute_score_moments, count_score_cells
from ragassay.jobs.verdicts.languages import find_measured_languages
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.certify import certify, rows_needed
from ragassay.pipeline.calibration.probability import calibration_error, fit_probability, probabilities
from ragassay.pipeline.calibration.target import Target, best_precision, find_threshold, reached
from ragassay.pipeline.errors import ConfigError, FitError, InputError
from ragassay.pipeline.members import SCORE_COLUMNS, read_scores
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.pipeline.verdict.exact_quantile import share_cut
from ragassay.pipeline.verdict.moments import merge
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.calibration import CalibratedMember, Calibration, Certificate
from ragassay.schemas.columns import SUPPORTED
from ragassay.schemas.manifest import Manifest

MIN_ROWS_OF_A_LANGUAGE = 20
"""A language with fewer labelled rows has no figure of its own."""


def calibrate(
    output: Folder,
    manifest: Manifest,
    target: Target,
    source: LabelSource | None,
    *,
    group: str | None = None,
    delta: float | None = None,
    threshold_only: bool = False,
) -> Calibration:
    """Fit a calibration to a finalised output.

    Mean, policy and weights change only where that helps (HELPS). With `delta`, all that is fitted is fitted to one half of
    the items, and the other half does nothing but certify.

    Args:
        output: The output folder.
        manifest: Its manifest.
        target: What the threshold shall reach.
        source: Where the labels are; None for a target that needs none.
        group: Column that makes an item; see `load_labelled`.
        delta: Certify the target's precision, and be wrong with at most this probability; None does not certify.
        threshold_only: Keep the stored mean, policy and weights.

    Raises:
        ConfigError: The target needs labels, or can't be certified.
        FitError: The target can't be reached, or the labels are too few to certify it.
        RagassayError: Labels or verdicts can't be used; a precision is to be certified, and they were drawn unevenly.
    """
    if source is None and (target.needs_labels or delta is not None):
        raise ConfigError(errors.NO_LABELS, target=target.text)
    if delta is not None:
        _check_certifiable(target, delta, manifest)
    values = member_values_of(manifest)
    stored = stored_rule(manifest, fits_of_all(output, values))
    if source is None:
        tau, measured = _of_all_scores(output, values, stored, target)
        return _calibration(manifest, target, values, stored, tau, measured)

    rows = load_labelled(output, values, source, group=group)
    if delta is not None and rows.uneven:
        raise InputError(errors.DRAWN_UNEVENLY, file=source.file)
    fitting = half_of(rows) if delta is not None else np.ones(len(rows.labels), dtype=bool)

    def chosen(mine: Bools) -> Choice:
        choice = Choice(stored, False) if threshold_only else choose(rows, stored, mine)
        advance(1, "fits")
        return choice

    expect(1 + FOLDS, "fits")

    choice = chosen(fitting)
    # The rule is chosen anew in each fold, so that what is measured on the rest was fitted to none of it.
    folds = [(chosen(np.isin(np.arange(len(fitting)), train)), train, test) for train, test in folds_of(rows, fitting)]
    rule = fitted_rule(choice, rows, fitting)
    scores = apply_rule(rule, rows.values, rows.counts).response
    certificate = None
    if delta is not None:
        tau, certificate = _certified(target, delta, rows, scores, fitting)
        measured = {f"held_out_{name}": v for name, v in reached(target.of, scores[~fitting], rows.good[~fitting], tau).items()}
    elif target.needs_labels:
        found = find_threshold(target, scores, rows.good)
        if found is None:
            raise FitError(
                errors.OUT_OF_REACH,
                target=target.text,
                kind=target.of,
                rows=len(rows.labels),
                best=best_precision(target, scores, rows.good),
            )
        tau = found
        measured = {**_in_sample(target, scores, rows, tau), **_held_out(target, rows, folds)}
    else:
        tau, of_all = _of_all_scores(output, values, rule, target)
        measured = {**of_all, **_in_sample(target, scores, rows, tau)}
    measured |= _calibration_errors(rows, folds)
    calibration = _calibration(manifest, target, values, rule, tau, measured)
    return replace(
        calibration,
        label=rows.named(source.column),
        rows=dict(Counter(label.value for label in rows.labels)),
        probability=fit_probability(scores[fitting], rows.good[fitting]) if _both(rows.good[fitting]) else None,
        certificate=certificate,
        languages=_measured_in(rows) or calibration.languages,
    )


def _check_certifiable(target: Target, delta: float, manifest: Manifest) -> None:
    if not 0 < delta < 1:
        raise ConfigError(errors.DELTA_OUT_OF_RANGE, delta=delta)
    if manifest.last_fit and manifest.last_fit.calibrated:
        raise ConfigError(errors.CALIBRATED_ALREADY)
    if target.metric != "precision":
        raise ConfigError(errors.ONLY_PRECISION, target=target.text)


def _calibration(
    manifest: Manifest, target: Target, values: dict[str, str], rule: Rule, tau: float, measured: dict[str, float | None]
) -> Calibration:
    now = datetime.now(UTC)
    equal = 1 / len(values)
    return Calibration(
        calibration_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        created=now.isoformat(timespec="seconds"),
        target=target.text,
        positive_class=target.of,
        label=None,
        rows={},
        members={
            name: CalibratedMember(
                values[name], fit.mu, fit.sigma, fit.count, fit.low, rule.weights[name] if rule.weights else equal
            )
            for name, fit in rule.fits.items()
        },
        mean=rule.mean.value,
        positive=rule.positive.value,
        epsilon=rule.epsilon,
        threshold=tau,
        sentence=rule.sentence,
        probability=None,
        certificate=None,
        measured=measured,
        fingerprint=manifest.fingerprint,
        languages=find_measured_languages(values, manifest.fingerprint),
    )


def _measured_in(rows: Labelled) -> tuple[str, ...]:
    """The languages of which there are enough labelled rows for a figure."""
    return tuple(sorted(code for code, count in rows.languages.items() if count >= MIN_ROWS_OF_A_LANGUAGE))


def _both(good: Bools) -> bool:
    return bool(good.any()) and not bool(good.all())


def _of_all_scores(output: Folder, values: dict[str, str], rule: Rule, target: Target) -> tuple[float, dict[str, float | None]]:
    """A threshold from every response's score: the quantile that flags the wanted share, or the mean of the history."""
    scoring = VerdictSettings(values, rule, None, "")
    scored = open_scored(output)  # a run may be adding to raw/
    moments = merge(compute_score_moments(part, scoring) for part in scored.partitions.values())
    if not moments.count:
        raise FitError(errors.NO_SCORE, target=target.text)
    if target.metric != "mean":
        cut = share_cut(
            lambda *keys: (count_score_cells(part, scoring, *keys) for part in scored.partitions.values()), target.level
        )
        assert cut is not None
        return cut.value, {"responses": float(cut.count), "flagged_of_all": cut.flagged / cut.count}
    flagged = 0
    for rows in scored.batches(SCORE_COLUMNS):
        flagged += int((apply_rule(rule, *read_scores(rows.batch, values)).response <= moments.mean).sum())
    return moments.mean, {"responses": float(moments.count), "flagged_of_all": flagged / moments.count}


def _certified(target: Target, delta: float, rows: Labelled, scores: Floats, fitting: Bools) -> tuple[float, Certificate]:
    """A certified threshold. One response an item is drawn in each half, because responses to one item are not independent."""
    sign = 1.0 if target.of == SUPPORTED else -1.0
    drawn = np.random.default_rng(SEED).permutation(len(scores))
    single = np.zeros(len(scores), dtype=bool)
    single[drawn[np.unique(rows.groups[drawn], return_index=True)[1]]] = True
    right = rows.good if target.of == SUPPORTED else ~rows.good
    halves = [(sign * scores[single & half], right[single & half]) for half in (fitting, ~fitting)]
    cut, certificate = certify(halves[0], halves[1], target.level, delta)
    if cut is None:
        needed = rows_needed(target.level, delta)
        raise FitError(
            errors.NOT_CERTIFIED,
            target=target.text,
            delta=delta,
            rows=len(halves[1][0]),
            selected=certificate.selected,
            correct=certificate.correct,
            kind=target.of,
            bound=certificate.bound,
            needed=needed,
        )
    # What was certified is "score >= cut", and a response passes if its score > tau.
    return (float(np.nextafter(cut, -np.inf)) if sign > 0 else -cut), certificate


def _in_sample(target: Target, scores: Floats, rows: Labelled, tau: float) -> dict[str, float | None]:
    return {f"in_sample_{name}": v for name, v in reached(target.of, scores, rows.good, tau).items()}


def _held_out(target: Target, rows: Labelled, folds: list[tuple[Choice, Ints, Ints]]) -> dict[str, float | None]:
    """What a threshold fitted to four folds gives on the fifth, all fifths together."""
    tau = np.full(len(rows.labels), np.nan)
    held = np.zeros_like(tau)
    for choice, train, test in folds:
        scores = apply_rule(fitted_rule(choice, rows, train), rows.values, rows.counts).response
        found = find_threshold(target, scores[train], rows.good[train])
        # A fold that reaches the target nowhere lets nothing pass, or flags nothing.
        nothing = np.inf if target.of == SUPPORTED else -np.inf
        tau[test] = nothing if found is None else found
        held[test] = scores[test]
    there = ~np.isnan(tau)
    if not there.any():
        return {}
    return {f"held_out_{name}": v for name, v in reached(target.of, held[there], rows.good[there], tau[there]).items()}


def _calibration_errors(rows: Labelled, folds: list[tuple[Choice, Ints, Ints]]) -> dict[str, float | None]:
    """Expected calibration error: before, of the SLMs' own P(yes) / (P(yes) + P(no)); after, of the map, on held-out folds."""
    after = np.full(len(rows.labels), np.nan)
    for choice, train, test in folds:
        scores = apply_rule(fitted_rule(choice, rows, train), rows.values, rows.counts).response
        after[test] = probabilities(fit_probability(scores[train], rows.good[train]), scores[test])
    there, own = ~np.isnan(after), ~np.isnan(rows.shares)
    return {
        "ece_before": calibration_error(rows.shares[own], rows.good[own]) if own.any() else None,
        "ece_after": calibration_error(after[there], rows.good[there]) if there.any() else None,
    }
