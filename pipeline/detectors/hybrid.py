"""Detector `hybrid`: the weighted mean of `entities` and `attribution`."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import DetectorEvidence, TextBatch
from ragassay.pipeline.detectors.entities import Entities


class Hybrid(BaseDetector):
    """Weighted mean of the values of `Entities` and `Attribution`; attribution alone for a text without entities.

    Attributes:
        ner: See `Entities`.
        similarity: See `Attribution`.
        model: See `Attribution`.
        entity_share: Weight of the entities; attribution has the weight 1 - entity_share.
    """

    SUSPICIOUS_BELOW: ClassVar[float] = 0.4
    NO_VALUE_REASON: ClassVar[str] = Attribution.NO_VALUE_REASON

    kind: Literal["hybrid"] = "hybrid"
    ner: str | None = None
    similarity: Literal["tfidf", "embedding"] = "tfidf"
    model: str = "embedded"
    entity_share: float = Field(0.5, ge=0, le=1)

    @property
    def _parts(self) -> tuple[Entities, Attribution]:
        attribution = Attribution(name=self.name, similarity=self.similarity, model=self.model)
        return Entities(name=self.name, ner=self.ner), attribution

    def identity(self) -> dict[str, Any]:
        """See `BaseDetector.identity`."""
        entities, attribution = (part.identity() for part in self._parts)
        return {**entities, **attribution, "kind": self.kind, "entity_share": f"{self.entity_share:g}"}

    def prepare(self) -> None:
        """See `BaseDetector.prepare`."""
        for part in self._parts:
            part.prepare()

    def compute_values(self, batch: TextBatch, evidence: list[DetectorEvidence], threads: int) -> Floats:
        """See `BaseDetector.compute_values`."""
        entities, attribution = (part.compute_values(batch, evidence, threads) for part in self._parts)
        share = np.where(np.isnan(entities), 0.0, self.entity_share)
        return np.asarray(share * np.nan_to_num(entities) + (1 - share) * attribution)
