"""Sets of rows by `row_key`, as Roaring bitmaps.

Their memory grows with the number of row ranges, to at most about one bit per row.
"""

from array import array

import numpy as np
from pyroaring import BitMap64 as RowSet

from ragassay.pipeline.arrays import Bools, Ints

__all__ = ["RowSet", "add_keys", "contains_keys", "list_files", "list_keys", "make_row_set", "slice_rows"]


def make_row_set(keys: Ints) -> RowSet:
    """Make a set of `row_key`s, which may be in any order and repeated."""
    rows = RowSet()
    add_keys(rows, keys)
    rows.run_optimize()
    return rows


def add_keys(rows: RowSet, keys: Ints) -> None:
    """Add `row_key`s to a set. The time depends on the number of keys only; a union also depends on the size of the set."""
    rows.update(array("Q", keys.astype(np.int64, copy=False).tobytes()))  # ten times faster than from the numpy array


def list_keys(rows: RowSet) -> Ints:
    """Return the `row_key`s of a set, in order."""
    return np.array(rows.to_array(), np.int64)


def slice_rows(rows: RowSet, start: int, stop: int) -> RowSet:
    """Return the rows with `start <= row_key < stop`. Use ranges within one file: memory grows with the length of the range."""
    return rows & RowSet(range(start, stop))


def contains_keys(rows: RowSet, keys: Ints) -> Bools:
    """Return for each `row_key` whether the set contains it."""
    return np.isin(keys, list_keys(rows & make_row_set(keys)))


def list_files(rows: RowSet) -> set[int]:
    """Return the numbers of the files that have rows in the set."""
    files: set[int] = set()
    start = 0
    while (key := next(rows.iter_equal_or_larger(start), None)) is not None:
        files.add(key >> 32)
        start = (key >> 32) + 1 << 32
    return files
