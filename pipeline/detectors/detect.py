"""Run the detectors over rows: a value of each sentence and of each whole response, or the reason why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.batch import DetectorEvidence, TextBatch
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.rows import Row

NO_WORD_SPACES = "its script has no spaces between words"


@dataclass
class DetectionResult:
    """Values and evidence of the detectors for a batch of rows.

    Attributes:
        sentence_values: Detector -> a value per sentence, of all rows in order; NaN if the detector has no evidence.
        response_values: Detector -> a value per row, for its whole response; NaN likewise.
        evidence: Evidence per sentence, in the same order.
    """

    sentence_values: dict[str, Floats]
    response_values: dict[str, Floats]
    evidence: list[DetectorEvidence]


def run_detectors(
    rows: Sequence[Row], detectors: Sequence[Detector], language: str, frequencies: DocumentFrequencies, threads: int = 1
) -> DetectionResult:
    """Run detectors over rows. The values of a detector do not depend on other detectors or rows.

    Args:
        rows: Rows with at least one sentence and one passage each.
        detectors: Detectors to run.
        language: ISO 639-1 code, for stop words and stems.
        frequencies: Document frequencies, for novelty and TF-IDF.
        threads: CPU threads for embeddings.

    Raises:
        ConfigError: A spaCy pipeline is missing, or has no entity recognizer.
        ModelError: An embedding model can't be loaded.
    """
    batch = TextBatch(rows, language, frequencies)
    result = DetectionResult({}, {}, [DetectorEvidence() for _ in batch.sentences])
    for detector in detectors:
        values = np.where(batch.has_word_spaces, detector.compute_values(batch, result.evidence, threads), np.nan)
        size = len(batch.sentences)
        result.sentence_values[detector.name], result.response_values[detector.name] = values[:size], values[size:]
        for i in np.flatnonzero(np.isnan(values[:size])):
            reason = detector.NO_VALUE_REASON if batch.has_word_spaces[i] else NO_WORD_SPACES
            result.evidence[i].notes.append(f"{detector.name}: {reason}")
    return result
