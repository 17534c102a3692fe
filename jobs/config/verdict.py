"""The section `verdict` of a job file: how scores become verdicts, and when they have drifted."""

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs.config.section import Section
from ragassay.pipeline.verdict.aggregate import POSITIVE_ONLY, Mean, PositivityPolicy

BUNDLED, NONE = "bundled", "none"
"""Values of `calibration` that name no file."""

DEFAULT_MEAN, DEFAULT_POSITIVE, DEFAULT_EPSILON, DEFAULT_QUANTILE = Mean.HARMONIC, PositivityPolicy.CDF, 0.01, 0.2
DEFAULT_SENTENCE = 0.5
"""Settings that neither a calibration nor the job file gives."""


class Normalize(Section):
    """Where mu and sigma come from.

    Attributes:
        source: run (the partitions that are finalized), history (those and the ones before them, see `History`), or frozen (a
            file). null takes the calibration's mu and sigma; without a calibration, those of the run.
        file: For frozen: a JSON file {member: {mu, sigma, count, low}}, or the manifest.json of an earlier run.
    """

    source: Literal["run", "history", "frozen"] | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _file_goes_with_frozen(self) -> "Normalize":
        if (self.source == "frozen") != (self.file is not None):
            raise PydanticCustomError("config.frozen-file", "file goes with source: frozen, and frozen needs it")
        return self


class Aggregate(Section):
    """How sentence scores become a response's score: a mean, after a positivity policy.

    null takes the calibration's setting; without a calibration, the default.

    Attributes:
        mean: The mean.
        positive: What makes scores positive first.
        epsilon: Smallest score that the policy clip returns.
    """

    mean: Mean | None = None
    positive: PositivityPolicy | None = None
    epsilon: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _positive_where_needed(self) -> "Aggregate":
        check_positive(self.mean or DEFAULT_MEAN, self.positive)
        return self


def check_positive(mean: Mean, positive: PositivityPolicy | None) -> None:
    """Refuse a mean that needs positive scores under a policy that does not make them positive.

    Args:
        mean: How sentence scores become a response's score.
        positive: The policy; None if it is not known yet.

    Raises:
        ValueError: The mean needs positive scores.
    """
    if mean in POSITIVE_ONLY and positive is PositivityPolicy.NONE:
        raise PydanticCustomError(
            "config.positive-scores",
            "the {mean} mean needs positive scores: positive must be clip, cdf or shift",
            {"mean": mean.value},
        )


class Threshold(Section):
    """The threshold tau: a value, or a quantile of the response scores.

    Without either it is the calibration's threshold; without a calibration, the quantile 0.2.

    Attributes:
        sentence: Threshold of a sentence, as a fraction of the response's threshold: a sentence at or below it is flagged, and
            its response is hallucinated. null takes the calibration's; without a calibration, 0.5. It has no effect under
            `rule: aggregate`.
        value: tau itself.
        quantile: Fraction of responses to flag, 0 to 1, instead of a value; rounded down to whole responses, ties aside.
        of: Responses that the quantile is computed over: run, or history (this run and earlier partitions).
        measured_on: Data that a value was measured on; the summary and the manifest repeat it.
    """

    sentence: float | None = Field(None, gt=0, le=1)
    value: float | None = Field(None, allow_inf_nan=False)
    quantile: float | None = Field(None, ge=0, le=1)
    of: Literal["run", "history"] = "run"
    measured_on: str | None = None

    @model_validator(mode="after")
    def _check_value_or_quantile(self) -> "Threshold":
        if self.value is not None and self.quantile is not None:
            raise PydanticCustomError("config.value-and-quantile", "give either value or quantile")
        if self.of != "run" and self.quantile is None:
            raise PydanticCustomError(
                "config.of-without-quantile",
                "of: {of} names the responses that a quantile is computed over: add quantile, or remove of",
                {"of": self.of},
            )
        if self.measured_on is not None and self.value is None:
            raise PydanticCustomError(
                "config.measured-without-value",
                "measured_on names the data that a value was measured on: add value, or remove measured_on",
            )
        return self

    @property
    def is_set(self) -> bool:
        """Whether the job file gives a threshold."""
        return self.value is not None or self.quantile is not None


class History(Section):
    """The earlier partitions that a run is compared with, and fitted on where a setting names history.

    Attributes:
        partitions: How many values of the first hive key, such as days, it contains.
    """

    partitions: int = Field(30, ge=1)


class Drift(Section):
    """How much the latest partition may differ from its history before it counts as drift.

    Attributes:
        psi: Population stability index of a member's sentence values; 0.25 is the usual mark of a shift.
        ks: Kolmogorov-Smirnov distance of the same values, 0 to 1.
        label_mass: Change of an SLM's mean P(yes) + P(no).
        flagged: Change of the share of responses flagged; one within chance does not count.
        error_rate: Rise of the share of rows that can't be scored; one within chance does not count.
        sentences: Change of the number of sentences per response, as a fraction of the history's.
        min_sentences: With fewer sentences on either side, only the error rate counts.
    """

    psi: float = Field(0.25, gt=0)
    ks: float = Field(0.2, gt=0, le=1)
    label_mass: float = Field(0.1, gt=0, le=1)
    flagged: float = Field(0.1, gt=0, le=1)
    error_rate: float = Field(0.02, gt=0, le=1)
    sentences: float = Field(0.25, gt=0)
    min_sentences: int = Field(100, ge=1)


class VerdictConfig(Section):
    """How scores become verdicts, and when they have drifted.

    Attributes:
        calibration: Source of the settings that normalize, aggregate and threshold leave open: bundled (the calibration of the
            package if it was fitted for exactly these members, otherwise none), none, or a file of `ragassay calibrate`, which
            brings its own weights too.
        normalize: Where mu and sigma come from.
        rule: both: a response is hallucinated if its score is at or below the threshold or a sentence is flagged. aggregate:
            the score alone decides, as in the paper.
        aggregate: Mean and positivity policy.
        threshold: The threshold tau.
        history: The earlier partitions that a run is compared with.
        drift: When a difference counts as drift.
    """

    calibration: str = Field("bundled", min_length=1)
    normalize: Normalize = Normalize()
    rule: Literal["both", "aggregate"] = "both"
    aggregate: Aggregate = Aggregate()
    threshold: Threshold = Threshold()
    history: History = History()
    drift: Drift = Drift()

    @field_validator("calibration", mode="before")
    @classmethod
    def _names_a_calibration(cls, calibration: Any) -> Any:
        if calibration is None:
            raise PydanticCustomError(
                "config.null-calibration", "null names no calibration: give bundled, none, or a file of `ragassay calibrate`"
            )
        return calibration

    @property
    def calibration_file(self) -> str | None:
        """The file of `ragassay calibrate` that is used; None without a file."""
        return None if self.calibration in (BUNDLED, NONE) else self.calibration

    def with_calibration(self, calibration: str | None) -> "VerdictConfig":
        """Return this section under another calibration; a file replaces normalize, aggregate and threshold.

        Args:
            calibration: BUNDLED, NONE or a file, as in the job file; None changes nothing.
        """
        if calibration is None:
            return self
        update: dict[str, Any] = {"calibration": calibration}
        if calibration not in (BUNDLED, NONE):
            update |= {"normalize": Normalize(), "aggregate": Aggregate(), "threshold": Threshold()}
        return self.model_copy(update=update)
