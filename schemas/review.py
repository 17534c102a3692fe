"""A reviewer's label of a sentence or a response: one line of JSON per label, as the review page saves it."""

from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

MIN_PROBABILITY = 1e-12
"""Lower limit of an inclusion probability: a row represents 1 / inclusion probability rows, and no log is larger than 10^12
rows."""


class ReviewLabel(StrEnum):
    """Label that a reviewer can give. `unsure` states only that the reviewer has looked."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNSURE = "unsure"


class ReviewLine(BaseModel):
    """A reviewer's label of one sentence or one whole response.

    Attributes:
        row_id: `row_id` of the row in `scored/`.
        partition: Partition of the row, such as `dt=2026-11-20`; null if the output has none.
        start: Offset of the sentence's first character in the response; null for a label of the whole response.
        end: Offset after its last character; null together with `start`.
        label: The label.
        reviewer: Name of the reviewer; null if unknown.
        at: Time with time zone. The latest label of a reviewer for the same sentence or response counts.
        stratum: Stratum that the row was drawn from; null for an unstratified sample.
        inclusion_probability: Probability that the sample includes the response, MIN_PROBABILITY to 1; null if it is equal for
            all responses.
    """

    # An unknown field is a typing error, or belongs to another version: never drop it silently.
    model_config = ConfigDict(extra="forbid", frozen=True)

    row_id: str
    partition: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = None
    label: ReviewLabel
    reviewer: str | None = None
    at: AwareDatetime | None = None
    stratum: str | None = None
    inclusion_probability: float | None = Field(default=None, ge=MIN_PROBABILITY, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_span(self) -> "ReviewLine":
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end must both be set or both be null")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("end must be greater than start")
        return self

    def to_json(self) -> str:
        """Return the line without its line break; null fields are left out."""
        return self.model_dump_json(exclude_none=True)

    @staticmethod
    def from_json(text: str) -> "ReviewLine":
        """Read a line.

        Raises:
            ValueError: The text is not a review line; the message names each invalid field.
        """
        try:
            return ReviewLine.model_validate_json(text)
        except ValidationError as error:
            messages = (": ".join(filter(None, [".".join(map(str, e["loc"])), e["msg"]])) for e in error.errors())
            raise ValueError("; ".join(messages)) from error
