"""Detector `novelty`: the share of a text's content words and numbers that the context or question contains."""

from typing import ClassVar, Literal

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import DetectorEvidence, TextBatch
from ragassay.pipeline.detectors.find_entities import EntityKind
from ragassay.pipeline.detectors.frequencies import count_hashed_terms
from ragassay.pipeline.detectors.similarity import compute_coverage


class Novelty(BaseDetector):
    """Weighted share of a text's content words and numbers that the context or question contains: 1 - novelty."""

    SUSPICIOUS_BELOW: ClassVar[float] = 0.6
    NO_VALUE_REASON: ClassVar[str] = "no content word"

    kind: Literal["novelty"] = "novelty"

    def compute_values(self, batch: TextBatch, evidence: list[DetectorEvidence], threads: int) -> Floats:
        """See `BaseDetector.compute_values`."""
        number_terms: list[list[str]] = []
        known_terms: list[list[str]] = [[] for _ in batch.rows]
        for row, entities in zip(batch.sentence_rows, batch.rule_entities, strict=True):
            numbers = [entity for entity in entities if entity.kind is EntityKind.NUMBER]
            terms = [f"#{min(map(str, number.keys))}" for number in numbers]
            number_terms.append(terms)
            known_keys = batch.known_keys[row]
            known_terms[row] += [term for term, number in zip(terms, numbers, strict=True) if number.is_known(known_keys)]
        text_counts = batch.text_counts + batch.append_response_sums(count_hashed_terms(number_terms))
        known_counts = batch.known_counts + count_hashed_terms(known_terms)
        return compute_coverage(text_counts.tocsr(), batch.text_rows, known_counts.tocsr(), batch.frequencies)
