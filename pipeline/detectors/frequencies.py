"""How many documents hold each term, in hashed buckets: mergeable, of fixed size, and without a vocabulary to keep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints

BUCKETS = 1 << 18


@dataclass(frozen=True)
class Frequencies:
    """Document frequencies.

    Attributes:
        documents: How many documents were counted.
        counts: int64 array (BUCKETS): documents that hold a term of the bucket.
    """

    documents: int
    counts: Ints

    @cached_property
    def idf(self) -> Floats:
        """Inverse document frequency of each bucket, as scikit-learn smooths it: ln((1 + N) / (1 + df)) + 1."""
        return np.asarray(np.log((1 + self.documents) / (1 + self.counts)) + 1.0)


def hashed(documents: Iterable[Sequence[str]]) -> Any:
    """Term counts of documents: scipy CSR matrix (documents, BUCKETS), float64."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction import FeatureHasher

    documents = iter(documents)
    first = next(documents, None)
    if first is None:  # which FeatureHasher refuses
        return csr_matrix((0, BUCKETS))
    documents = chain([first], documents)
    return FeatureHasher(BUCKETS, input_type="string", alternate_sign=False).transform(documents).tocsr()


def count(documents: Iterable[Sequence[str]]) -> Frequencies:
    """Document frequencies of lists of terms."""
    matrix = hashed(documents)
    return Frequencies(matrix.shape[0], np.bincount(matrix.indices, minlength=BUCKETS).astype(np.int64))


def merge(parts: Iterable[Frequencies]) -> Frequencies:
    """Frequencies of the union; of nothing, no document."""
    total = Frequencies(0, np.zeros(BUCKETS, dtype=np.int64))
    for part in parts:
        total = Frequencies(total.documents + part.documents, total.counts + part.counts)
    return total
