"""Entities: what a text names, and whether its context has it."""

from typing import Any, ClassVar, Literal

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.detectors.ner import load_ner


class Entities(BaseDetector):
    """Share of the names, numbers and dates that the context has.

    Attributes:
        ner: Installed spaCy pipeline whose entity recogniser finds names; None finds them by rules.
    """

    SUSPICIOUS_BELOW: ClassVar[float] = 0.5
    NOTHING: ClassVar[str] = "nothing named"

    kind: Literal["entities"] = "entities"
    ner: str | None = None

    def identity(self) -> dict[str, Any]:
        """See `BaseDetector.identity`."""
        return {**super().identity(), "ner": self.ner or "rules"}

    def prepare(self) -> None:
        """See `BaseDetector.prepare`."""
        if self.ner is not None:
            load_ner(self.ner)

    def values(self, batch: Batch, evidence: list[Evidence], threads: int) -> Floats:
        """See `BaseDetector.values`."""
        return share_known(batch, self.ner, evidence)


def share_known(batch: Batch, ner: str | None, evidence: list[Evidence]) -> Floats:
    """Share of the names, numbers and dates that context or question have; what they lack goes into the evidence."""
    values = np.full(len(batch.texts), np.nan)
    for i, (row, entities) in enumerate(zip(batch.text_rows, batch.entities(ner), strict=True)):
        if entities:
            missing = [e for e in entities if not e.is_in(batch.known_keys[row])]
            values[i] = 1 - len(missing) / len(entities)
            if i < len(evidence) and not evidence[i].missing:
                evidence[i].missing = [(e.kind.value, e.text) for e in missing]
    return values
