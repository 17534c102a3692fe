"""The cascade's settings: who judges, and which responses it is asked about."""

from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.model import SETTINGS
from ragassay.pipeline.reasoning.config import Price
from ragassay.pipeline.slm.config import Slm
from ragassay.schemas.columns import ENSEMBLE

UNCERTAINTY = "uncertainty"
"""The order in which the response comes first whose ensemble score lies nearest to the threshold."""


class Escalate(BaseModel):
    """The cascade.

    Attributes:
        to: The judge: an SLM as any, only larger; its verdict takes the place of the ensemble's.
        when: uncertainty (the responses whose ensemble score lies nearest to the threshold), or a member of the job (those of
            which it has the lowest values).
        share: Share of the scored responses of the partitions at hand, rounded down to whole ones; or
        threshold: dynamic: those of which the member's value is at or below the mean of all before them.
        order: For dynamic: column by whose values the responses stand in a row, equal ones by `row_key`; None takes `row_key`.
        price: What a served judge costs, for `plan` and the manifest; None leaves costs out.
    """

    model_config = SETTINGS

    to: Slm
    when: str = UNCERTAINTY
    share: float | None = Field(None, ge=0, le=1)
    threshold: Literal["dynamic"] | None = None
    order: str | None = None
    price: Price | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Escalate":
        if (self.share is None) == (self.threshold is None):
            raise PydanticCustomError("config.share-and-threshold", "give either share (such as 0.2) or threshold: dynamic")
        if self.threshold and self.when == UNCERTAINTY:
            raise PydanticCustomError(
                "config.dynamic-without-when", "threshold: dynamic is of a member's values: name the member in when"
            )
        if self.order is not None and not self.threshold:
            raise PydanticCustomError(
                "config.order-of-share",
                "order goes with threshold: dynamic; a share asks the most doubtful, in whatever order they came",
            )
        if self.price is not None and not self.to.engine.SERVED:
            raise PydanticCustomError("config.price-unserved", "price is what a served judge costs: leave it out")
        return self

    def check_members(self, names: list[str]) -> None:
        """Check names against those of a job's members.

        Raises:
            ValueError: `when` is no member, or the judge bears a name that is taken.
        """
        taken = [*names, ENSEMBLE]
        if self.to.name in taken:
            raise PydanticCustomError(
                "config.judge-name",
                "escalate.to needs a name of its own, not '{name}': {taken} are taken",
                {"name": self.to.name, "taken": ", ".join(taken)},
            )
        if self.when != UNCERTAINTY and self.when not in names:
            raise PydanticCustomError(
                "config.when-no-member",
                "escalate.when names no member, '{when}': take uncertainty or one of {members}",
                {"when": self.when, "members": ", ".join(names)},
            )
        if self.when == UNCERTAINTY and UNCERTAINTY in names:
            raise PydanticCustomError(
                "config.when-ambiguous",
                "escalate.when: uncertainty may mean the member of that name too: call the member otherwise",
            )

    def identity(self) -> dict[str, Any]:
        """What the judge's values depend on, weights among it."""
        return {**self.to.engine.weights(self.to), **self.to.identity()}
