"""Which responses a share takes: the most doubtful first, equal ones by their key."""

from fractions import Fraction

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints


def count_share_rows(share: float, rows: int) -> int:
    """Whole rows of a share, as it is written: 0.29 of 100 are 29."""
    return int(Fraction(repr(float(share))) * rows)


def select_most_doubtful(keys: Ints, certainty: Floats, share: float) -> Ints:
    """The rows that a share takes.

    Args:
        keys: `row_key` of each, all different; what is equally certain is taken by it.
        certainty: How certain each is; NaN, where nothing is known, comes last.
        share: Of the rows, 0 to 1.

    Returns:
        Their places, ascending. A larger share takes the same and more.
    """
    order = np.lexsort((keys, certainty))
    return np.sort(np.asarray(order, dtype=np.int64)[: count_share_rows(share, len(keys))])
