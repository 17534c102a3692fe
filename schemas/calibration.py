"""A calibration: the threshold, moments, policy, weights and probabilities that were fitted to labels, as versioned JSON."""

from dataclasses import dataclass
from typing import Any

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class CalibratedMember:
    """Fixed statistics and weight of a member.

    Attributes:
        value: Kind of the member's value that is normalized.
        mu: Mean that is subtracted from the value.
        sigma: Standard deviation that divides it, > 0.
        count: Number of values behind `mu` and `sigma`.
        low: Smallest of these values.
        weight: Weight in the ensemble, >= 0; all weights sum to 1.
    """

    __pydantic_config__ = RECORD_CONFIG

    value: str
    mu: float
    sigma: float
    count: int
    low: float
    weight: float


@dataclass(frozen=True)
class ProbabilityMap:
    """Map from the score of a response or sentence to the probability that it is supported.

    Attributes:
        kind: `platt`: 1 / (1 + exp(-(slope * score + intercept))). `isotonic`: linear between the points (x, y), constant
            outside them.
        slope: Slope of `platt`.
        intercept: Intercept of `platt`.
        x: Scores of `isotonic`, ascending.
        y: Probabilities at `x`, ascending, 0 to 1.
    """

    __pydantic_config__ = RECORD_CONFIG

    kind: str
    slope: float = 0.0
    intercept: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """Certified lower bound of a precision.

    Attributes:
        precision: Certified precision.
        delta: Probability, over the draw of the labeled rows, that the true precision is lower.
        selected: Labeled rows of the certifying half that the threshold selects.
        correct: Selected rows that are right.
        bound: Lower Clopper-Pearson bound of the precision, at level `delta`.
    """

    __pydantic_config__ = RECORD_CONFIG

    precision: float
    delta: float
    selected: int
    correct: int
    bound: float


@dataclass(frozen=True)
class Calibration(Record):
    """Result of `calibrate`, which `finalize` uses.

    Attributes:
        calibration_id: Identifier.
        created: UTC, ISO 8601.
        target: Requested target, such as `supported-precision>=0.95`.
        positive_class: Class that the target's precision and recall describe: supported or hallucinated.
        label: Label column; null if the threshold was fitted without labels.
        rows: Label -> number of rows with it.
        members: Fixed statistics and weights of the members.
        mean: Aggregation of sentence scores.
        positive: Positivity policy.
        epsilon: Epsilon of the positivity policy.
        threshold: tau.
        sentence: Sentence threshold as a fraction of tau; null if the mean alone decides.
        probability: Map from response scores to P(supported); null without labels.
        sentence_probability: Map from the ensemble scores of sentences to P(supported); null without labels of sentences.
        certificate: Certified precision; null if none was requested.
        measured: Metric -> value on the labeled rows; `held_out_…` are values on held-out folds;
            `…_hits` of `…_selected` rows are of the class that the target selects, out of `…_positives` of `…_rows` rows.
        fingerprint: Fingerprint of the scores; a calibration applies only to scores with the same fingerprint.
        languages: ISO 639-1 codes of the languages in which it was measured, sorted; null if they are not recorded.
        target_met: Whether held-out items reach the target, or a certificate does; null for a target without labels or a level.
    """

    DESCRIPTION = "a calibration"

    calibration_id: str
    created: str
    target: str
    positive_class: str
    label: str | None
    rows: dict[str, int]
    members: dict[str, CalibratedMember]
    mean: str
    positive: str
    epsilon: float
    threshold: float
    sentence: float | None
    probability: ProbabilityMap | None
    sentence_probability: ProbabilityMap | None
    certificate: Certificate | None
    measured: dict[str, float | None]
    fingerprint: dict[str, Any]
    languages: tuple[str, ...] | None = None
    target_met: bool | None = None
