"""Which rows a share takes: laws that hold for any rows."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.cascade.choose import count_share_rows, select_most_doubtful

ROW = st.tuples(st.integers(0, 2**40), st.one_of(st.floats(-3, 3), st.sampled_from([0.0, math.nan, math.inf])))
ROWS = st.lists(ROW, unique_by=lambda row: row[0], max_size=40)
SHARE = st.integers(0, 100).map(lambda percent: percent / 100)


def taken(rows: list[tuple[int, float]], share: float) -> set[int]:
    keys, certainty = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.array([], int), np.array([]))
    return {rows[i][0] for i in select_most_doubtful(keys, certainty, share).tolist()}


@given(ROWS, SHARE, SHARE, st.randoms())
def test_nothing_matters_but_the_rows(rows: list[tuple[int, float]], share: float, more: float, random: object) -> None:
    found = taken(rows, share)
    assert len(found) == math.floor(Fraction(str(share)) * len(rows))
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert taken(shuffled, share) == found <= taken(rows, max(share, more))
    certainty = dict(rows)
    left = set(certainty) - found
    rank = {key: (math.isnan(value), 0.0 if math.isnan(value) else value, key) for key, value in rows}
    assert not found or not left or max(rank[key] for key in found) < min(rank[key] for key in left)


@pytest.mark.parametrize(("share", "rows", "whole"), [(0.29, 100, 29), (0.7, 10, 7), (1.0, 3, 3), (0.0, 9, 0), (0.999, 1, 0)])
def test_a_share_is_what_is_written(share: float, rows: int, whole: int) -> None:
    assert count_share_rows(share, rows) == whole
