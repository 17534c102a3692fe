"""The section `members` of a job file: the members of the ensemble and their weights."""

from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs.config.section import Section
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import needs_question
from ragassay.pipeline.uncertainty.config import Rerank, Uncertainty, UncertaintyModelConfig


def default_members() -> dict[str, Any]:
    """Return the members of a job that names none, with the weights that measured best.

    The bundled verifier decides. The detectors need no model; they add a little and show what the context lacks
    (docs/background/method.md).
    """
    detectors = ("entities", "attribution", "novelty")
    return {
        "slms": [{"name": "facts", "adapter": "facts"}],
        "detectors": [{"name": kind, "kind": kind} for kind in detectors],
        "weights": {"facts": 27, **dict.fromkeys(detectors, 1)},
    }


class MembersConfig(Section):
    """The members of the ensemble and their weights.

    A job that names SLMs or detectors has no others. A job that names neither has those of `default_members`.

    Attributes:
        slms: SLMs; a row passes through them in this order. Without an SLM the detectors decide alone.
        uncertainty: Scores of how certain a model is of the responses, such as AttenHScore; outside the ensemble by default.
        detectors: Members that need no model.
        weights: Member -> weight in the ensemble, above 0, for all members or for none; without weights all count the same.
        rerank: Model that orders passages, best first, for SLMs and scores of uncertainty; null keeps their order.
    """

    slms: tuple[Slm, ...] = ()
    uncertainty: tuple[Uncertainty, ...] = ()
    detectors: tuple[Detector, ...] = ()
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    rerank: Rerank | None = None

    @model_validator(mode="before")
    @classmethod
    def _use_default_members(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "slms" in data or "detectors" in data:
            return data
        return {**default_members(), **data}

    @model_validator(mode="after")
    def _names_differ(self) -> "MembersConfig":
        names = [member.name for member in self.all]
        if len(set(names)) != len(names):
            raise PydanticCustomError("config.member-names", "names of members must differ: {names}", {"names": names})
        if len(self.outside_ensemble) == len(names):
            raise PydanticCustomError(
                "config.no-member", "an ensemble needs a member: add an SLM, or a detector with in_ensemble: true"
            )
        return self

    @model_validator(mode="after")
    def _evidence_has_one_source(self) -> "MembersConfig":
        names = [slm.name for slm in self.slms if slm.evidence]
        if len(names) > 1:
            raise PydanticCustomError(
                "config.evidence-twice",
                "only one SLM can find evidence, but {names} have evidence: true: remove it from all but one",
                {"names": ", ".join(names)},
            )
        return self

    @model_validator(mode="after")
    def _rerank_is_used(self) -> "MembersConfig":
        if self.rerank is None:
            return self
        if self.rerank.name in self.value_kinds:
            raise PydanticCustomError(
                "config.rerank-name",
                "no member can be named '{name}' next to members.rerank: rename it",
                {"name": self.rerank.name},
            )
        if not self.slms and not self.uncertainty:
            raise PydanticCustomError(
                "config.rerank-unused",
                "members.rerank orders passages for SLMs and scores of uncertainty, and there are none: remove it",
            )
        return self

    @model_validator(mode="after")
    def _weights_match_members(self) -> "MembersConfig":
        names = [name for name in self.value_kinds if name not in self.outside_ensemble]
        if self.weights and set(self.weights) != set(names):
            raise PydanticCustomError(
                "config.weights-of-members",
                "members.weights must name every member of the ensemble and nothing else: {members}",
                {"members": ", ".join(names)},
            )
        return self

    def with_evidence(self) -> "MembersConfig":
        """Return the members with evidence of the first SLM that is not served, unless a job sets `evidence`."""
        first = next((i for i, slm in enumerate(self.slms) if not slm.engine.IS_SERVED), None)
        if first is None or any(slm.evidence is not None for slm in self.slms):
            return self
        slms = [slm.model_copy(update={"evidence": i == first}) for i, slm in enumerate(self.slms)]
        return self.model_copy(update={"slms": tuple(slms)})

    @property
    def all(self) -> tuple[Slm | Uncertainty | Detector, ...]:
        """All members, in the order in which a row passes through them."""
        return (*self.slms, *self.uncertainty, *self.detectors)

    @property
    def names(self) -> list[str]:
        """Names of all members, in that order."""
        return [member.name for member in self.all]

    @property
    def value_kinds(self) -> dict[str, str]:
        """Member -> which of its values is normalized, such as `mean_logprob`."""
        return {member.name: member.value for member in self.all}

    @property
    def outside_ensemble(self) -> set[str]:
        """Names of the members that are not averaged into the scores."""
        return {member.name for member in (*self.uncertainty, *self.detectors) if not member.in_ensemble}

    @property
    def ensemble_value_kinds(self) -> dict[str, str]:
        """Member of the ensemble -> kind of its value that is normalized."""
        return {name: value for name, value in self.value_kinds.items() if name not in self.outside_ensemble}

    @property
    def ensemble_weights(self) -> dict[str, float] | None:
        """Member -> weight; the weights sum to 1, members outside the ensemble have 0. None if all are equal."""
        if self.weights:
            total = sum(self.weights.values())
            return {name: self.weights.get(name, 0.0) / total for name in self.value_kinds}
        outside = self.outside_ensemble
        share = 1 / (len(self.value_kinds) - len(outside))
        return {name: 0.0 if name in outside else share for name in self.value_kinds} if outside else None

    @property
    def flag_limits(self) -> dict[str, float | None]:
        """Member -> value of a response below which this member alone finds it suspicious; None without such a limit."""
        return {member.name: member.suspicious_below for member in self.all}

    @property
    def need_question(self) -> bool:
        """Whether a row without a question can't be scored."""
        return any(needs_question(slm) for slm in self.slms)

    @property
    def reading_groups(self) -> list[list[Uncertainty]]:
        """Scores of uncertainty, grouped by the model pass that they share."""
        groups: list[list[Uncertainty]] = []
        for member in self.uncertainty:
            group = next((group for group in groups if group[0].measurement_settings() == member.measurement_settings()), None)
            if group is None:
                groups.append([member])
            else:
                group.append(member)
        return groups

    @property
    def models_without_slms(self) -> tuple[UncertaintyModelConfig, ...]:
        """All models of uncertainty scores and of re-ranking."""
        return (*self.uncertainty, *([self.rerank] if self.rerank else []))

    @property
    def local_pools(self) -> dict[str, Replicas]:
        """Stage with a model in our own processes -> its actor pool."""
        slms = {slm.name: slm.replicas for slm in self.slms if not slm.engine.IS_SERVED}
        readings = {group[0].name: group[0].replicas for group in self.reading_groups}
        return {**({self.rerank.name: self.rerank.replicas} if self.rerank else {}), **slms, **readings}
