"""Count the documents that contain each term, in hashed buckets: mergeable, of fixed size, without a stored vocabulary."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints

BUCKETS = 1 << 18
CACHE_SIZE = 1 << 18
"""Terms whose buckets a process caches."""


@dataclass(frozen=True)
class DocumentFrequencies:
    """Document frequencies.

    Attributes:
        documents: Number of documents.
        counts: int64 array (BUCKETS): documents with a term of the bucket.
    """

    documents: int
    counts: Ints

    @cached_property
    def idf(self) -> Floats:
        """Inverse document frequency of each bucket, as scikit-learn smooths it: ln((1 + N) / (1 + df)) + 1."""
        return np.asarray(np.log((1 + self.documents) / (1 + self.counts)) + 1.0)


def count_hashed_terms(documents: Iterable[Sequence[str]]) -> Any:
    """Count the terms of documents: scipy CSR matrix (documents, BUCKETS), float64."""
    from scipy.sparse import csr_matrix

    buckets: list[int] = []
    ends = [0]
    for document in documents:
        buckets += map(_buckets.__getitem__, document)
        ends.append(len(buckets))
    counts = csr_matrix((np.ones(len(buckets)), np.array(buckets, dtype=np.int32), ends), shape=(len(ends) - 1, BUCKETS))
    counts.sum_duplicates()
    return counts


class _Buckets(dict[str, int]):
    """Cache of term -> bucket, by MurmurHash3 as scikit-learn's FeatureHasher uses it.

    The hash comes from a dependency of spaCy, because importing scikit-learn takes a second.
    """

    def __missing__(self, term: str) -> int:
        from murmurhash.mrmr import hash_unicode

        if len(self) >= CACHE_SIZE:
            self.clear()
        self[term] = bucket = abs(int(hash_unicode(term, 0))) % BUCKETS
        return bucket


_buckets = _Buckets()


def count_frequencies(documents: Iterable[Sequence[str]]) -> DocumentFrequencies:
    """Count the documents that contain each term."""
    matrix = count_hashed_terms(documents)
    return DocumentFrequencies(matrix.shape[0], np.bincount(matrix.indices, minlength=BUCKETS).astype(np.int64))


def merge_frequencies(parts: Iterable[DocumentFrequencies]) -> DocumentFrequencies:
    """Add up frequencies; without parts, return frequencies of no documents."""
    total = DocumentFrequencies(0, np.zeros(BUCKETS, dtype=np.int64))
    for part in parts:
        total = DocumentFrequencies(total.documents + part.documents, total.counts + part.counts)
    return total
