"""How many documents hold each term, in hashed buckets: mergeable, of fixed size, and without a vocabulary to keep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints

BUCKETS = 1 << 18
REMEMBERED = 1 << 18
"""Terms whose buckets a process remembers."""


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

    places: list[int] = []
    ends = [0]
    for document in documents:
        places += map(_buckets.__getitem__, document)
        ends.append(len(places))
    found = csr_matrix((np.ones(len(places)), np.array(places, dtype=np.int32), ends), shape=(len(ends) - 1, BUCKETS))
    found.sum_duplicates()
    return found


class _Buckets(dict[str, int]):
    """Term -> its bucket, by MurmurHash3 as scikit-learn's FeatureHasher takes it; remembered, since texts repeat their terms.

    The hash is of the package that spaCy has it of: to import scikit-learn takes a second.
    """

    def __missing__(self, term: str) -> int:
        from murmurhash.mrmr import hash_unicode

        if len(self) >= REMEMBERED:
            self.clear()
        self[term] = bucket = abs(int(hash_unicode(term, 0))) % BUCKETS
        return bucket


_buckets = _Buckets()


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
