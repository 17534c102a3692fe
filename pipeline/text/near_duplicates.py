"""Find near-duplicate texts: MinHash and LSH give candidates, whose word 3-shingles are then compared."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.text.words import extract_words

ShingleHashes = npt.NDArray[np.uint64]

NUM_HASHES = 128
"""Hash functions per MinHash."""

MIN_DETECTION = 0.99
"""Minimum probability of detecting a pair whose similarity equals the threshold. More similar pairs are detected more often."""

MAX_SHINGLES = 1024
"""Shingles kept per text. The similarity of longer texts is estimated from these."""


def hash_shingles(text: str) -> ShingleHashes:
    """Return the smallest hashes of the word 3-shingles of a text.

    A text with fewer than three words is hashed word by word, a text without words as a whole.
    """
    text_words = extract_words(text)
    shingles = [" ".join(text_words[i : i + 3]) for i in range(len(text_words) - 2)] or text_words or [text.strip()]
    hashes = b"".join(blake2b(shingle.encode(), digest_size=8).digest() for shingle in shingles)
    return np.unique(np.frombuffer(hashes, dtype="<u8"))[:MAX_SHINGLES]


def find_near_duplicates(hashes: Sequence[ShingleHashes], similarity: float) -> set[int]:
    """Return the indices of texts that are near-duplicates of an earlier, kept text.

    Args:
        hashes: Result of `hash_shingles` for each text, preferred texts first. About 5 KB per text, with its LSH entry.
        similarity: Jaccard similarity at which two texts count as duplicates, above 0 and up to 1.
    """
    from datasketch import MinHash, MinHashLSH

    # The longest bands that detect a pair at this similarity. The comparison removes false candidates.
    rows = max(
        (r for r in range(1, NUM_HASHES // 2 + 1) if 1 - (1 - similarity**r) ** (NUM_HASHES // r) >= MIN_DETECTION), default=1
    )
    index = MinHashLSH(num_perm=NUM_HASHES, params=(NUM_HASHES // rows, rows))
    exact_keys: set[bytes] = set()
    duplicates: set[int] = set()
    for i, text_hashes in enumerate(hashes):
        key = text_hashes.tobytes()
        if key in exact_keys:  # a text equal to the first occurrence, kept or not, resembles a kept text
            duplicates.add(i)
            continue
        exact_keys.add(key)
        minhash = MinHash(num_perm=NUM_HASHES, seed=1, hashfunc=int)
        minhash.update_batch(text_hashes & np.uint64(0xFFFFFFFF))
        if any(_estimate_jaccard(text_hashes, hashes[candidate]) >= similarity for candidate in index.query(minhash)):
            duplicates.add(i)
        else:
            index.insert(i, minhash)
    return duplicates


def _estimate_jaccard(first: ShingleHashes, second: ShingleHashes) -> float:
    """Return the share of the smallest hashes of the union that both sets have."""
    union = np.union1d(first, second)[:MAX_SHINGLES]
    return float(np.isin(union, np.intersect1d(first, second)).mean())
