"""Settings of the actor pool of a model."""

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


class Replicas(BaseModel):
    """Actor pool of one model: Ray Data scales it between min and max.

    Attributes:
        min: Replicas to start at once and keep.
        max: Maximum number of replicas.
        num_cpus: Logical CPUs that one replica reserves in Ray; a fraction is allowed.
        num_gpus: GPUs that one replica reserves; 0.25 puts four replicas on a card.
        hang_minutes: Time without progress, while the engine loads or works, after which a replica is killed and replaced; each
            engine step counts as progress. Null waits forever.
        restarts: How often a replica whose process ended is restarted in one run; then the run ends with an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    min: int = Field(1, ge=1)
    max: int = Field(1, ge=1)
    num_cpus: float = Field(0.5, ge=0)
    num_gpus: float = Field(0, ge=0)
    hang_minutes: float | None = Field(60, gt=0)
    restarts: int = Field(5, ge=0)

    @model_validator(mode="after")
    def _check_range(self) -> "Replicas":
        if self.max < self.min:
            raise PydanticCustomError(
                "config.replicas-range", "max ({max}) is below min ({min})", {"max": self.max, "min": self.min}
            )
        return self
