"""The threshold that flags a given share of the scores, exactly, however many there are and wherever they lie.

A sketch with buckets of 1 % is no use here: under `shift` one outlier puts most scores into one bucket. So the scores are
looked at several times. Each look counts them in CELLS equal parts of a range, in the order of their bits (which is that of
the numbers), and the next range is what the cell in question holds; where that is one number, it is the threshold. Cells of
several partitions add up, and no look holds more than CELLS of them. Three looks are enough for millions of scores.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import floor

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Floats, Ints

Keys = npt.NDArray[np.uint64]

CELLS = 1 << 16
LAST_KEY = (1 << 64) - 1
_SIGN = 1 << 63


@dataclass(frozen=True)
class Cells:
    """The parts of a range that hold scores, ascending.

    Attributes:
        place: Number of each.
        count: Scores in it.
        low: Key of the smallest.
        high: Key of the largest.
    """

    place: Keys
    count: Ints
    low: Keys
    high: Keys


@dataclass(frozen=True)
class Cut:
    """A threshold.

    Attributes:
        value: tau.
        flagged: Scores that are not above it.
        count: All scores.
    """

    value: float
    flagged: int
    count: int


def share_cut(look: Callable[[int, int], Iterable[Cells]], share: float) -> Cut | None:
    """The threshold that flags floor(share * n) of n scores, ties aside: what ties with the last of them is flagged too.

    The share counts as it is written: 0.07 of 100 are 7, although in floats the product is a little more. Where the floor is
    0, nothing is flagged but what is -inf.

    Args:
        look: From the keys of a range, both included, to the cells of each partition (`cells_of`), which are added up one by
            one; called several times, and must see the same scores each time.
        share: 0 to 1.

    Returns:
        The threshold; None where there is no score.
    """
    low, high, below = 0, LAST_KEY, 0
    count = rank = 0
    while True:
        cells = add_cells(look(low, high))
        if not count:
            count = int(cells.count.sum())
            rank = floor(Fraction(repr(float(share))) * count)
            if not count:
                return None
            if not rank:
                least = int(cells.low[0])
                tau = float(np.nextafter(_number(least), -np.inf))
                tied = add_cells(look(least, least)).count.sum() if tau == _number(least) else 0
                return Cut(tau, int(tied), count)
        seen = below + np.cumsum(cells.count)
        place = int(np.searchsorted(seen, rank))
        below = int(seen[place] - cells.count[place])
        low, high = int(cells.low[place]), int(cells.high[place])
        if low == high:
            return Cut(_number(low), int(seen[place]), count)


def cells_of(scores: Floats, low: int = 0, high: int = LAST_KEY) -> Cells:
    """Count scores in the equal parts of a range of keys; NaN counts as none."""
    keys = _keys(scores[~np.isnan(scores)])
    keys = np.sort(keys[(keys >= np.uint64(low)) & (keys <= np.uint64(high))])
    width = np.uint64((high - low) // CELLS + 1)
    place, start, count = np.unique((keys - np.uint64(low)) // width, return_index=True, return_counts=True)
    return Cells(place, count.astype(np.int64), keys[start], keys[start + count - 1])


def add_cells(parts: Iterable[Cells]) -> Cells:
    """Cells of the union of several sets of scores, counted over one range."""
    return reduce(_add_two, parts, cells_of(np.array([])))


def _add_two(one: Cells, other: Cells) -> Cells:
    place, count, low, high = (np.concatenate([getattr(one, n), getattr(other, n)]) for n in Cells.__annotations__)
    order = np.argsort(place, kind="stable")
    different, start = np.unique(place[order], return_index=True)
    if not len(different):
        return one
    return Cells(
        different,
        np.add.reduceat(count[order], start),
        np.minimum.reduceat(low[order], start),
        np.maximum.reduceat(high[order], start),
    )


def _keys(numbers: Floats) -> Keys:
    """Whole numbers in the order of the floats; 0 and -0 have one."""
    bits = (numbers + 0.0).view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(_SIGN))


def _number(key: int) -> float:
    bits = key ^ _SIGN if key & _SIGN else ~key & LAST_KEY
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])
