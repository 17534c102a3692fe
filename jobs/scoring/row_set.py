"""Sets of rows by their `row_key`s, as Roaring bitmaps: memory grows with the runs of rows, to about a bit per row at most."""

from array import array

import numpy as np
from pyroaring import BitMap64 as RowSet

from ragassay.pipeline.arrays import Bools, Ints

__all__ = ["RowSet", "add_keys", "files_of", "holds", "keys_of", "row_set", "within"]


def row_set(keys: Ints) -> RowSet:
    """A set of `row_key`s, which may come in any order and more than once."""
    rows = RowSet()
    add_keys(rows, keys)
    rows.run_optimize()
    return rows


def add_keys(rows: RowSet, keys: Ints) -> None:
    """Add `row_key`s to a set. It takes time by their number alone, where a union goes through both sets."""
    rows.update(array("Q", keys.astype(np.int64, copy=False).tobytes()))  # ten times as fast as from the array itself


def keys_of(rows: RowSet) -> Ints:
    """The `row_key`s of a set, in order."""
    return np.array(rows.to_array(), np.int64)


def within(rows: RowSet, start: int, stop: int) -> RowSet:
    """Those of the rows with `start <= row_key < stop`, which are of one file: a longer range takes memory by its length."""
    return rows & RowSet(range(start, stop))


def holds(rows: RowSet, keys: Ints) -> Bools:
    """Which of these `row_key`s a set holds."""
    return np.isin(keys, keys_of(rows & row_set(keys)))


def files_of(rows: RowSet) -> set[int]:
    """Numbers of the files of which a set holds rows."""
    files: set[int] = set()
    start = 0
    while (key := next(rows.iter_equal_or_larger(start), None)) is not None:
        files.add(key >> 32)
        start = (key >> 32) + 1 << 32
    return files
