"""A calibration: threshold, mean, policy, weights and probabilities that were fitted to labels, as versioned JSON."""

from dataclasses import dataclass
from typing import Any

from ragassay.schemas.versioned import RECORD, Record


@dataclass(frozen=True)
class CalibratedMember:
    """Frozen statistics and weight of a member.

    Attributes:
        value: Which of its numbers is normalised.
        mu: Mean that is taken from it.
        sigma: Deviation that it is divided by, > 0.
        count: Values behind the two.
        low: The smallest of them.
        weight: Its weight in the ensemble, >= 0; all weights sum to 1.
    """

    __pydantic_config__ = RECORD

    value: str
    mu: float
    sigma: float
    count: int
    low: float
    weight: float


@dataclass(frozen=True)
class ProbabilityMap:
    """From a response score to the probability that the response is supported.

    Attributes:
        kind: platt: 1 / (1 + exp(-(slope * score + intercept))). isotonic: straight lines between (x, y), flat outside.
        slope: Of platt.
        intercept: Of platt.
        x: Response scores of isotonic, ascending.
        y: Probabilities at x, ascending, 0 to 1.
    """

    __pydantic_config__ = RECORD

    kind: str
    slope: float = 0.0
    intercept: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """What was certified.

    Attributes:
        precision: Precision that holds.
        delta: Probability, over the draw of the labelled rows, that it does not.
        selected: Labelled rows of the certifying half that the threshold selects.
        correct: Those of them that are right.
        bound: Lower Clopper-Pearson bound of the precision, at level delta.
    """

    __pydantic_config__ = RECORD

    precision: float
    delta: float
    selected: int
    correct: int
    bound: float


@dataclass(frozen=True)
class Calibration(Record):
    """What `calibrate` found and `finalize` uses.

    Attributes:
        calibration_id: Its id.
        created: UTC, ISO 8601.
        target: What was asked for, such as `precision>=0.95`.
        positive_class: The class that the target's precision and recall are of: supported or hallucinated.
        label: Column of the labels; null where the threshold comes without labels.
        rows: Labelled rows by label.
        members: Frozen statistics and weights.
        mean: Aggregation of sentence scores.
        positive: Positivity policy.
        epsilon: Its epsilon.
        threshold: tau.
        sentence: Threshold of a sentence as a fraction of tau; null where the mean alone decides.
        probability: Map to P(supported); null without labels.
        certificate: What is certified; null where nothing was asked to be.
        measured: Figures, by name: of the labelled rows themselves, and `held_out_…` of folds that nothing was fitted to.
        fingerprint: Of the scores it was fitted to; scores under another one can't use it.
        languages: ISO 639-1 codes of the languages that it was measured in, sorted; null where it makes no statement.
    """

    WHAT = "a calibration"

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
    certificate: Certificate | None
    measured: dict[str, float | None]
    fingerprint: dict[str, Any]
    languages: tuple[str, ...] | None = None
