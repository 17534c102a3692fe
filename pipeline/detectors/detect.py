"""Run the detectors over rows: what each says of every sentence and of the whole response, and why where it says nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.detectors.batch import Batch, Evidence
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.rows import Row

NO_SPACES = "its script has no spaces between words"


@dataclass
class Detected:
    """What the detectors say of rows.

    Attributes:
        values: Detector -> a value a sentence, of all rows one after the other; NaN where it has none.
        responses: Detector -> a value a row, of its whole response.
        evidence: One a sentence, in the same order.
    """

    values: dict[str, Floats]
    responses: dict[str, Floats]
    evidence: list[Evidence]


def detect(
    rows: Sequence[Row], detectors: Sequence[Detector], language: str, frequencies: Frequencies, threads: int = 1
) -> Detected:
    """Run detectors over rows. What one says does not depend on which others run, nor on other rows.

    Args:
        rows: Rows with at least one sentence and one passage each.
        detectors: Which.
        language: ISO 639-1 code, for stop words and stems.
        frequencies: Document frequencies, for novelty and TF-IDF.
        threads: CPU threads for embeddings.

    Raises:
        ConfigError: A spaCy pipeline is missing, or has no entity recogniser.
        ModelError: An embedding model can't be loaded.
    """
    batch = Batch(rows, language, frequencies)
    found = Detected({}, {}, [Evidence() for _ in batch.sentences])
    for detector in detectors:
        values = np.where(batch.spaced, detector.values(batch, found.evidence, threads), np.nan)
        size = len(batch.sentences)
        found.values[detector.name], found.responses[detector.name] = values[:size], values[size:]
        for i in np.flatnonzero(np.isnan(values[:size])):
            found.evidence[i].notes.append(f"{detector.name}: {detector.NOTHING if batch.spaced[i] else NO_SPACES}")
    return found
