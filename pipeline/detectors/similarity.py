"""How much of a sentence its passages hold: novelty and TF-IDF cosine, for a whole batch of rows in sparse matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.detectors.frequencies import Frequencies

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Encode = Callable[[list[str]], npt.NDArray[np.float32]]
"""Texts -> unit vectors, one a text."""


@dataclass(frozen=True)
class Best:
    """The best part of each text's own row.

    Attributes:
        value: Cosine with it, 0 to 1; NaN where text or row has nothing to compare.
        part: Its number among all parts; -1 where there is none.
    """

    value: Floats
    part: Ints


def covered(texts: Any, rows: Ints, known: Any, frequencies: Frequencies) -> Floats:
    """Weighted share of a text's different terms that its row knows: 1 - novelty.

        covered_j = sum_{t in text_j and known} idf(t) / sum_{t in text_j} idf(t)

    Args:
        texts: Term counts of each text (`pipeline.detectors.frequencies.hashed`).
        rows: Number of each text's row.
        known: Term counts of each row's context and question.
        frequencies: Document frequencies.

    Returns:
        A share a text, 0 to 1; NaN where a text has no term.
    """
    there, have = texts.sign(), known.sign()
    total = there @ frequencies.idf
    hits = there.multiply(have[rows]).tocsr() @ frequencies.idf
    return np.asarray(np.divide(hits, total, out=np.full(len(total), np.nan), where=total > 0))


def best_by_terms(texts: Any, rows: Ints, parts: Any, part_rows: Ints, frequencies: Frequencies) -> Best:
    """The part of its row with the highest TF-IDF cosine, for each text.

    Args:
        texts: Term counts of each text.
        rows: Number of each text's row.
        parts: Term counts of each part (a passage, or a piece of one).
        part_rows: Number of each part's row, ascending.
        frequencies: Document frequencies.
    """
    size = texts.shape[0]
    if not (size and parts.shape[0]):
        return _nothing(size)
    left, right = (_tfidf(counts, frequencies) for counts in (texts, parts))
    usable = left.getnnz(axis=1) > 0, right.getnnz(axis=1) > 0
    i, j = _pairs(rows, part_rows)
    keep = usable[0][i] & usable[1][j]
    i, j = i[keep], j[keep]
    return _best(size, i, j, np.asarray(left[i].multiply(right[j]).sum(axis=1)).ravel())


def best_by_vectors(texts: Sequence[str], rows: Ints, parts: Sequence[str], part_rows: Ints, encode: Encode) -> Best:
    """The part of its row with the highest cosine of embeddings, for each text; a negative cosine counts as 0."""
    if not (len(texts) and len(parts)):
        return _nothing(len(texts))
    every = list(dict.fromkeys([*texts, *parts]))
    place = {text: k for k, text in enumerate(every)}
    vectors = encode(every)
    left, right = (vectors[[place[text] for text in lists]].astype(np.float64) for lists in (texts, parts))
    i, j = _pairs(rows, part_rows)
    return _best(len(texts), i, j, np.clip(np.einsum("kd,kd->k", left[i], right[j]), 0.0, 1.0))


def _tfidf(counts: Any, frequencies: Frequencies) -> Any:
    from sklearn.preprocessing import normalize

    weighted = counts.copy()
    weighted.data = counts.data * frequencies.idf[counts.indices]
    return normalize(weighted, copy=False)


def _pairs(rows: Ints, part_rows: Ints) -> tuple[Ints, Ints]:
    """Every pair of a text and a part of the same row: places of the texts, places of the parts."""
    starts, ends = np.searchsorted(part_rows, rows, "left"), np.searchsorted(part_rows, rows, "right")
    sizes = ends - starts
    i = np.repeat(np.arange(len(rows)), sizes)
    j = np.arange(len(i)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(starts, sizes)
    return i, j


def _best(size: int, i: Ints, j: Ints, values: Floats) -> Best:
    """The highest value of each text, the first of equal ones."""
    found = _nothing(size)
    order = np.lexsort((j, -values, i))
    first = order[np.flatnonzero(np.diff(i[order], prepend=-1))]
    found.value[i[first]], found.part[i[first]] = np.minimum(values[first], 1.0), j[first]
    return found


def _nothing(size: int) -> Best:
    return Best(np.full(size, np.nan), np.full(size, -1, dtype=np.int64))
