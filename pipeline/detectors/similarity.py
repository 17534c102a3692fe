"""How much of a sentence its passages hold: novelty and TF-IDF cosine, for a whole batch of rows in sparse matrices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.detectors.frequencies import Frequencies

Encode = Callable[[list[str]], npt.NDArray[np.float32]]
"""Texts -> unit vectors, one a text."""


AT_ONCE = 1 << 22
"""Numbers that are compared at a time (32 MiB each time they are copied), however many sentences and passages a row has."""


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
    hits = np.empty(len(total))
    for at in _slices(have.getnnz(axis=1)[rows]):
        hits[at] = there[at].multiply(have[rows[at]]).tocsr() @ frequencies.idf
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
    sizes = left.getnnz(axis=1), right.getnnz(axis=1)

    def cosines(i: Ints, j: Ints) -> Floats:
        values: Floats = np.asarray(left[i].multiply(right[j]).sum(axis=1)).ravel()
        values[(sizes[0][i] == 0) | (sizes[1][j] == 0)] = np.nan
        return values

    return _best(rows, part_rows, cosines, int(sizes[0].max() + sizes[1].max()))


def best_by_vectors(texts: Sequence[str], rows: Ints, parts: Sequence[str], part_rows: Ints, encode: Encode) -> Best:
    """The part of its row with the highest cosine of embeddings, for each text; a negative cosine counts as 0."""
    if not (len(texts) and len(parts)):
        return _nothing(len(texts))
    every = list(dict.fromkeys([*texts, *parts]))
    place = {text: k for k, text in enumerate(every)}
    vectors = encode(every)
    left, right = (np.array([place[text] for text in lists], dtype=np.int64) for lists in (texts, parts))

    def cosines(i: Ints, j: Ints) -> Floats:
        one, other = (vectors[places].astype(np.float64) for places in (left[i], right[j]))
        return np.asarray(np.clip(np.einsum("kd,kd->k", one, other), 0.0, 1.0))

    return _best(rows, part_rows, cosines, 2 * vectors.shape[1])


def _tfidf(counts: Any, frequencies: Frequencies) -> Any:
    """Rows of unit length, or empty."""
    weighted = counts.copy()
    weighted.data = counts.data * frequencies.idf[counts.indices]
    owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    weighted.data /= np.sqrt(np.bincount(owners, weighted.data**2, counts.shape[0]))[owners]
    return weighted


def _best(rows: Ints, part_rows: Ints, cosines: Callable[[Ints, Ints], Floats], width: int) -> Best:
    """The part of its row with the highest cosine, for each text; the first of equal ones.

    Args:
        rows: Number of each text's row.
        part_rows: Number of each part's row, ascending.
        cosines: Places of texts, places of parts -> cosine of each pair, NaN where one of them is empty.
        width: Numbers that a pair takes, at most.
    """
    found = _nothing(len(rows))
    for texts, parts in _pairs(rows, part_rows, max(1, AT_ONCE // max(1, width))):
        values = cosines(texts, parts)
        usable = ~np.isnan(values)
        i, j, values = texts[usable], parts[usable], values[usable]
        if not len(i):
            continue
        starts = np.flatnonzero(np.diff(i, prepend=-1))
        highest = np.repeat(np.maximum.reduceat(values, starts), np.diff(starts, append=len(i)))
        at = np.flatnonzero(values == highest)
        at = at[np.flatnonzero(np.diff(i[at], prepend=-1))]
        at = at[~(values[at] <= found.value[i[at]])]  # better than what earlier slices have, or they have none
        found.value[i[at]], found.part[i[at]] = values[at], j[at]
    np.minimum(found.value, 1.0, out=found.value)
    return found


def _pairs(rows: Ints, part_rows: Ints, size: int) -> Iterator[tuple[Ints, Ints]]:
    """Every pair of a text and a part of the same row, at most `size` at a time: places of the texts, places of the parts."""
    starts, ends = np.searchsorted(part_rows, rows, "left"), np.searchsorted(part_rows, rows, "right")
    last = np.cumsum(ends - starts)
    for first in range(0, int(last[-1]), size):
        pair = np.arange(first, min(first + size, int(last[-1])))
        i = np.searchsorted(last, pair, "right")
        yield i, ends[i] - last[i] + pair


def _slices(costs: Ints) -> Iterator[slice]:
    """Stretches of items that cost AT_ONCE together, and one more."""
    last = np.cumsum(costs)
    start = 0
    while start < len(last):
        spent = int(last[start - 1]) if start else 0
        end = int(np.searchsorted(last, spent + AT_ONCE, "right")) + 1
        yield slice(start, min(end, len(last)))
        start = end


def _nothing(size: int) -> Best:
    return Best(np.full(size, np.nan), np.full(size, -1, dtype=np.int64))
