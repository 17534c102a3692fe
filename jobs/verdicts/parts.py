"""The parts of which verdicts are made, and where each comes from: a calibration, unless the job file gives the part itself.

Only what differs counts. A setting that repeats what would be used without it changes nothing.
"""

from dataclasses import dataclass, replace
from typing import Any

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.verdict import (
    BUNDLED,
    DEFAULT_EPSILON,
    DEFAULT_MEAN,
    DEFAULT_POSITIVE,
    DEFAULT_SENTENCE,
    NONE,
    VerdictConfig,
    check_positive,
)
from ragassay.jobs.output.calibration_file import load_calibration, rule_of
from ragassay.jobs.verdicts import errors
from ragassay.jobs.verdicts.bundled_calibration import bundled_calibration, bundled_detectors, is_fitted_for
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.verdict.aggregate import legal_pairs
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration, ProbabilityMap
from ragassay.schemas.origins import Origins

BUNDLED_NAME = "bundled calibration"
THIS_RUN = {"run": "this run", "history": "this run and its history"}
JOB_FILE = "job file"


@dataclass(frozen=True)
class Parts:
    """How scores become verdicts, but for what only the scores give.

    Attributes:
        rule: Mean, policy, epsilon and weights. Its fits are the calibration's; empty where `own_moments`.
        own_moments: Whether mu and sigma come from where `normalize` says, and not from a calibration.
        tau: The threshold; None where it is a quantile of the response scores.
        probability: Map to P(supported); None where there is none for these scores.
        origins: Which part comes from where.
    """

    rule: Rule
    own_moments: bool
    tau: float | None
    probability: ProbabilityMap | None
    origins: Origins


def calibration_of(job: Job, fingerprint: dict[str, Any]) -> Calibration | None:
    """The calibration that judges scores.

    Args:
        job: The job.
        fingerprint: Of the scores.

    Returns:
        That of the job's file, or the bundled one if it was fitted for exactly the job's members; None without one.

    Raises:
        ConfigError: The file can't be read, or it belongs to other scores.
    """
    path = job.verdict.calibration_file
    if path is not None:
        return load_calibration(path, fingerprint, job.members.values)
    if job.verdict.calibration == BUNDLED and is_fitted_for(bundled_calibration(), job.members, fingerprint):
        return bundled_calibration()
    return None


def parts_of(job: Job, calibration: Calibration | None) -> Parts:
    """Put together the parts of a calibration and those that the job file gives.

    Args:
        job: The job.
        calibration: The calibration that judges; None without one.

    Raises:
        ConfigError: The job file contradicts the calibration, or itself.
    """
    config = job.verdict
    given = {name: getattr(config.aggregate, name) for name in ("mean", "positive", "epsilon")}
    if calibration is None:
        base = Rule({}, DEFAULT_MEAN, DEFAULT_POSITIVE, DEFAULT_EPSILON, job.members.ensemble_weights, DEFAULT_SENTENCE)
    else:
        base = rule_of(calibration)
    changed: dict[str, Any] = {k: value for k, value in given.items() if value is not None and value != getattr(base, k)}
    own_moments = calibration is None or config.normalize.source is not None
    rule = replace(base, fits={} if own_moments else base.fits, sentence=_sentence(config, base), **changed)
    try:
        check_positive(rule.mean, rule.positive)
    except ValueError as error:
        raise ConfigError(errors.AGGREGATE, reason=error) from error
    if (rule.mean, rule.positive) not in legal_pairs(rule.sentence is not None):
        raise ConfigError(errors.MEAN_OF_NO_POSITIVE_SCORES, mean=rule.mean, positive=rule.positive)
    by_calibration = calibration is not None and not config.threshold.is_given
    if calibration is not None and changed and by_calibration:
        raise _other_scale(calibration, changed, base)
    fits_scores = calibration is not None and not changed and not own_moments and rule.sentence == base.sentence
    return Parts(
        rule,
        own_moments,
        calibration.threshold if calibration is not None and by_calibration else config.threshold.value,
        calibration.probability if calibration is not None and fits_scores else None,
        _origins(config, calibration, changed, own_moments=own_moments, own_sentence=rule.sentence != base.sentence),
    )


def _sentence(config: VerdictConfig, base: Rule) -> float | None:
    """Threshold of a sentence as a fraction of the response's; None where the mean alone decides."""
    if config.rule == "aggregate":
        return None
    return config.threshold.sentence or base.sentence or DEFAULT_SENTENCE


def name_of(calibration: Calibration) -> str:
    """A calibration in words."""
    bundled = (bundled_calibration().calibration_id, bundled_detectors().calibration_id)
    known = calibration.calibration_id in bundled
    return BUNDLED_NAME if known else f"calibration {calibration.calibration_id}"


def _other_scale(calibration: Calibration, changed: dict[str, Any], base: Rule) -> ConfigError:
    settings = ", ".join(f"{key} {value} (the calibration has {getattr(base, key)})" for key, value in changed.items())
    keys = ", ".join(changed)
    return ConfigError(errors.OTHER_SCALE, calibration=name_of(calibration), settings=settings, keys=keys, none=NONE)


def _origins(
    config: VerdictConfig, calibration: Calibration | None, changed: dict[str, Any], *, own_moments: bool, own_sentence: bool
) -> Origins:
    base = "defaults" if calibration is None else name_of(calibration)
    aggregate = f"{JOB_FILE} ({', '.join(changed)})" if changed else base
    if calibration is not None and not config.threshold.is_given:
        threshold = base
    else:
        threshold = THIS_RUN[config.threshold.of] if config.threshold.value is None else JOB_FILE
    probability = note = None
    if calibration is None:
        others = "the bundled calibration was fitted for other members or weights"
        note = f"calibration: {NONE}" if config.calibration == NONE else others
    elif changed or own_moments or own_sentence:
        note = "the calibration's probabilities are for its own moments, aggregate and rule"
    elif calibration.probability is None:
        note = "the calibration was fitted without labels"
    else:
        probability = base
    moments = THIS_RUN.get(config.normalize.source or "run", JOB_FILE) if own_moments else base
    return Origins(
        moments, aggregate, threshold, probability, None if calibration is None else calibration.calibration_id, note
    )
