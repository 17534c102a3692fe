"""What a reviewer says of a sentence or a response: a line of JSON a thing said, as the review page saves it."""

from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

LEAST_PROBABILITY = 1e-12
"""A row stands for 1 / inclusion probability rows, and no log has more than so many."""


class Said(StrEnum):
    """What a reviewer can say. `unsure` is no label, but that somebody has looked."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNSURE = "unsure"


class ReviewLine(BaseModel):
    """One thing that a reviewer says of one sentence, or of a whole response.

    Attributes:
        row_id: `row_id` of the row in `scored/`.
        partition: Its partition, such as `dt=2026-11-20`; null where the output has none.
        start: First character of the sentence in the response; null where the label is of the whole response.
        end: The character behind its last; null with `start`.
        label: What is said.
        reviewer: Who says it; null where nobody is named.
        at: When, with its time zone. Of two things that a reviewer says of the same the later holds.
        stratum: The part of a stratified sample that the row was drawn from; null where it was not stratified.
        inclusion_probability: With what probability the response was drawn into the sample, LEAST_PROBABILITY to 1; null where
            all responses had the same.
    """

    # A field that nobody knows is a slip of the pen, or another version's: neither must be dropped unsaid.
    model_config = ConfigDict(extra="forbid", frozen=True)

    row_id: str
    partition: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = None
    label: Said
    reviewer: str | None = None
    at: AwareDatetime | None = None
    stratum: str | None = None
    inclusion_probability: float | None = Field(default=None, ge=LEAST_PROBABILITY, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _places(self) -> "ReviewLine":
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end go together")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("end must lie behind start")
        return self

    def to_json(self) -> str:
        """The line, without its line break; what is null is left out."""
        return self.model_dump_json(exclude_none=True)

    @staticmethod
    def from_json(text: str) -> "ReviewLine":
        """Read a line.

        Raises:
            ValueError: It is none; the message says what is wrong with which field.
        """
        try:
            return ReviewLine.model_validate_json(text)
        except ValidationError as error:
            faults = (": ".join(filter(None, [".".join(map(str, e["loc"])), e["msg"]])) for e in error.errors())
            raise ValueError("; ".join(faults)) from error
