"""Hybrid: entities and attribution together."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.detectors.entities import Entities


class Hybrid(BaseDetector):
    """Mean of what entities and attribution say; attribution alone where nothing is named.

    Attributes:
        ner: As of `Entities`.
        similarity: As of `Attribution`.
        model: As of `Attribution`.
        entity_share: Weight of the entities, the rest is the attribution's.
    """

    SUSPICIOUS_BELOW: ClassVar[float] = 0.4
    NOTHING: ClassVar[str] = Attribution.NOTHING

    kind: Literal["hybrid"] = "hybrid"
    ner: str | None = None
    similarity: Literal["tfidf", "embedding"] = "tfidf"
    model: str = "embedded"
    entity_share: float = Field(0.5, ge=0, le=1)

    @property
    def _parts(self) -> tuple[Entities, Attribution]:
        near = Attribution(name=self.name, similarity=self.similarity, model=self.model)
        return Entities(name=self.name, ner=self.ner), near

    def identity(self) -> dict[str, Any]:
        """See `BaseDetector.identity`."""
        named, near = (part.identity() for part in self._parts)
        return {**named, **near, "kind": self.kind, "entity_share": f"{self.entity_share:g}"}

    def prepare(self) -> None:
        """See `BaseDetector.prepare`."""
        for part in self._parts:
            part.prepare()

    def values(self, batch: Batch, evidence: list[Evidence], threads: int) -> Floats:
        """See `BaseDetector.values`."""
        named, near = (part.values(batch, evidence, threads) for part in self._parts)
        share = np.where(np.isnan(named), 0.0, self.entity_share)
        return np.asarray(share * np.nan_to_num(named) + (1 - share) * near)
