"""Novelty: how much of what a text says is not new to its context."""

from typing import ClassVar, Literal

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.detectors.frequencies import hashed
from ragassay.pipeline.detectors.named import EntityKind
from ragassay.pipeline.detectors.similarity import covered


class Novelty(BaseDetector):
    """Weighted share of the content words and numbers that context or question have."""

    SUSPICIOUS_BELOW: ClassVar[float] = 0.6
    NOTHING: ClassVar[str] = "no content word"

    kind: Literal["novelty"] = "novelty"

    def values(self, batch: Batch, evidence: list[Evidence], threads: int) -> Floats:
        """See `BaseDetector.values`."""
        return _novelty(batch)


def _novelty(batch: Batch) -> Floats:
    """Weighted share of the content words and numbers that context or question have."""
    numbers: list[list[str]] = []
    known: list[list[str]] = [[] for _ in batch.rows]
    for row, entities in zip(batch.sentence_rows, batch.entities_by_rules, strict=True):
        mine = [e for e in entities if e.kind is EntityKind.NUMBER]
        numbers.append([f"#{min(map(str, e.keys))}" for e in mine])
        known[row] += [term for term, e in zip(numbers[-1], mine, strict=True) if e.is_in(batch.known_keys[row])]
    texts = batch.text_counts + batch.with_responses(hashed(numbers))
    return covered(texts.tocsr(), batch.text_rows, (batch.known_counts + hashed(known)).tocsr(), batch.frequencies)
