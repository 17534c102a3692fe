"""What all detectors have in common: one file each beside this, and a line of the union in `config`."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.members import ValueKind

NOT_OF_VALUES = {"name", "in_ensemble", "flag_below"}
"""Settings that no value depends on."""


class BaseDetector(BaseModel):
    """One detector. Its values lie between 0 and 1, higher = better supported; null where it has nothing to go by.

    Attributes:
        name: Its name in `members`; unique in a job.
        in_ensemble: Average its values into the scores; false leaves them beside, for `evaluate` and `compare`.
        flag_below: Value of a whole response below which `compare` counts it as flagged; None takes the kind's own.
        SUSPICIOUS_BELOW: The kind's own.
        NOTHING: What it says where it has no value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())
    SUSPICIOUS_BELOW: ClassVar[float]
    NOTHING: ClassVar[str]

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    in_ensemble: bool = True
    flag_below: float | None = Field(None, ge=0, le=1)

    @property
    def value(self) -> str:
        """Which of its numbers is normalised (`pipeline.members.ValueKind`): it has but one."""
        return ValueKind.SCORE.value

    @property
    def suspicious_below(self) -> float:
        """Value of a whole response below which it is suspicious."""
        return self.SUSPICIOUS_BELOW if self.flag_below is None else self.flag_below

    def identity(self) -> dict[str, Any]:
        """What its values depend on: all of its settings, but for those that no value depends on."""
        return self.model_dump(mode="json", exclude=NOT_OF_VALUES)

    def prepare(self) -> None:
        """Load what it needs, so that a wrong name fails before a run begins.

        Raises:
            RagassayError: It can't be found or used.
        """

    def values(self, batch: Batch, evidence: list[Evidence], threads: int) -> Floats:
        """Its value of each text of a batch, NaN where it has none.

        Args:
            batch: Rows.
            evidence: One a sentence, into which it puts what it found.
            threads: CPU threads that it may use.
        """
        raise NotImplementedError
