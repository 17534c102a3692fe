"""Near-duplicate texts by MinHash and LSH, candidates compared by their word 3-shingles."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.calibration.baselines import words

Sketch = npt.NDArray[np.uint64]

HASHES = 128
"""Hash functions of a MinHash."""

FOUND = 0.99
"""Probability, at least, that a pair right at the wanted similarity is found; pairs above it are surer still."""

SKETCH = 1024
"""Shingles a question keeps: the similarity of longer questions is estimated from these."""


def sketch_of(text: str) -> Sketch:
    """The smallest hashes of a text's word 3-shingles; of its words where it has fewer, of itself where it has none."""
    found = words(text)
    shingles = [" ".join(found[i : i + 3]) for i in range(len(found) - 2)] or found or [text.strip()]
    hashes = b"".join(blake2b(shingle.encode(), digest_size=8).digest() for shingle in shingles)
    return np.unique(np.frombuffer(hashes, dtype="<u8"))[:SKETCH]


def near_duplicates(sketches: Sequence[Sketch], similarity: float) -> set[int]:
    """Places of the texts that are near-duplicates of an earlier one that stays.

    MinHash and LSH find candidates, whose shingles are then compared.

    Args:
        sketches: Of the texts, those to keep first; some 5 KB each, with its place in the index.
        similarity: Jaccard similarity from which two texts count as the same, above 0 and up to 1.
    """
    from datasketch import MinHash, MinHashLSH

    # The longest bands that still find a pair at this similarity; what they find in vain is sorted out by comparing.
    rows = max((r for r in range(1, HASHES // 2 + 1) if 1 - (1 - similarity**r) ** (HASHES // r) >= FOUND), default=1)
    index = MinHashLSH(num_perm=HASHES, params=(HASHES // rows, rows))
    seen: set[bytes] = set()
    repeated: set[int] = set()
    for place, sketch in enumerate(sketches):
        key = sketch.tobytes()
        if key in seen:  # what the first one is like, kept or not, is kept
            repeated.add(place)
            continue
        seen.add(key)
        minhash = MinHash(num_perm=HASHES, seed=1, hashfunc=int)
        minhash.update_batch(sketch & np.uint64(0xFFFFFFFF))
        if any(_jaccard(sketch, sketches[other]) >= similarity for other in index.query(minhash)):
            repeated.add(place)
        else:
            index.insert(place, minhash)
    return repeated


def _jaccard(one: Sketch, other: Sketch) -> float:
    """Similarity of two sets: of the smallest hashes of both together, those that both have."""
    union = np.union1d(one, other)[:SKETCH]
    return float(np.isin(union, np.intersect1d(one, other)).mean())
