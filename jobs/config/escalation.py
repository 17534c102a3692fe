"""The section `escalation` of a job file: the larger models that judge or explain a few of the responses."""

from typing import Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs.config.section import Section
from ragassay.pipeline.cascade.config import UNCERTAINTY, EscalationPolicy
from ragassay.pipeline.engines.price import Price
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.slm.config import Slm
from ragassay.schemas.columns import ENSEMBLE


class EscalationConfig(Section):
    """The larger models that judge or explain a few of the responses.

    Attributes:
        judge: Larger SLM that decides the most doubtful responses instead of the ensemble (a cascade); null escalates nothing.
        when: Which responses are the most doubtful: uncertainty (their ensemble score is nearest to the threshold), or a member
            (it gives them its lowest values).
        share: Fraction of the scored responses to escalate, rounded down to whole responses; or
        threshold: dynamic: escalate responses whose value of the member is at or below the mean of all responses before them.
        order: For dynamic: column that orders the responses, ties by row_key; null orders them by row_key.
        price: What a served judge costs, for `plan` and the manifest; null reports no costs.
        explainer: Larger model that `explain` asks why sentences were flagged; it gives no verdicts.
    """

    judge: Slm | None = None
    when: str = UNCERTAINTY
    share: float | None = Field(None, ge=0, le=1)
    threshold: Literal["dynamic"] | None = None
    order: str | None = None
    price: Price | None = None
    explainer: Reasoner | None = None

    @property
    def policy(self) -> EscalationPolicy | None:
        """The judge, and the responses that it decides; None if nothing is escalated."""
        if self.judge is None:
            return None
        return EscalationPolicy(self.judge, self.when, self.share, self.threshold, self.order, self.price)

    @model_validator(mode="after")
    def _judge_finds_no_evidence(self) -> "EscalationConfig":
        if self.judge is not None and self.judge.evidence:
            raise PydanticCustomError(
                "config.judge-evidence", "escalation.judge finds no evidence: remove evidence, or set it in members.slms"
            )
        return self

    @model_validator(mode="after")
    def _settings_need_a_judge(self) -> "EscalationConfig":
        defaults = {name: type(self).model_fields[name].default for name in ("when", "share", "threshold", "order", "price")}
        settings = [name for name, default in defaults.items() if getattr(self, name) != default]
        if self.judge is None and settings:
            raise PydanticCustomError(
                "config.escalation-without-judge",
                "{settings}: only a judge needs these: add escalation.judge, or remove them",
                {"settings": ", ".join(f"escalation.{name}" for name in settings)},
            )
        return self

    @model_validator(mode="after")
    def _share_or_threshold(self) -> "EscalationConfig":
        if self.judge is None:
            return self
        if (self.share is None) == (self.threshold is None):
            raise PydanticCustomError("config.share-and-threshold", "give either share (such as 0.2) or threshold: dynamic")
        if self.threshold and self.when == UNCERTAINTY:
            raise PydanticCustomError(
                "config.dynamic-without-when", "threshold: dynamic compares a member's values: name the member in when"
            )
        if self.order is not None and not self.threshold:
            raise PydanticCustomError(
                "config.order-of-share",
                "order goes with threshold: dynamic; a share escalates the most doubtful responses in any order: remove order",
            )
        if self.price is not None and not self.judge.engine.IS_SERVED:
            raise PydanticCustomError("config.price-unserved", "price is what a served judge costs: remove it")
        return self

    def check_members(self, names: list[str]) -> None:
        """Check this section against the names of a job's members.

        Raises:
            ValueError: `when` is no member, or the judge has the name of a member.
        """
        if self.judge is None:
            return
        used = [*names, ENSEMBLE]
        if self.judge.name in used:
            raise PydanticCustomError(
                "config.judge-name",
                "escalation.judge needs another name than '{name}': {used} are in use",
                {"name": self.judge.name, "used": ", ".join(used)},
            )
        if self.when != UNCERTAINTY and self.when not in names:
            raise PydanticCustomError(
                "config.when-no-member",
                "escalation.when names no member, '{when}': use uncertainty or one of {members}",
                {"when": self.when, "members": ", ".join(names)},
            )
        if self.when == UNCERTAINTY and UNCERTAINTY in names:
            raise PydanticCustomError(
                "config.when-ambiguous",
                "escalation.when: uncertainty is also the name of a member: rename the member",
            )
