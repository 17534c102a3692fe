"""Detector `overlap`: the share of a text's words that its context contains."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import DetectorEvidence, TextBatch


class Overlap(BaseDetector):
    """Share of a text's words that its context contains.

    Attributes:
        min_chars: Shorter words do not count.
    """

    SUSPICIOUS_BELOW: ClassVar[float] = 0.5
    NO_VALUE_REASON: ClassVar[str] = "no long word"

    kind: Literal["overlap"] = "overlap"
    min_chars: int = Field(3, ge=1)

    def compute_values(self, batch: TextBatch, evidence: list[DetectorEvidence], threads: int) -> Floats:
        contexts = [self._split(" ".join(row.context)) for row in batch.rows]
        shares = []
        for row, text in zip(batch.text_rows, batch.texts, strict=True):
            words = self._split(text)
            shares.append(len(words & contexts[row]) / len(words) if words else np.nan)
        return np.array(shares)

    def _split(self, text: str) -> set[str]:
        words = (word.strip(".,;:!?\"'()") for word in text.lower().split())
        return {word for word in words if len(word) >= self.min_chars}
