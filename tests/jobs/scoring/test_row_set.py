"""A set of rows behaves as a set of numbers, and its memory grows with blocks, not with rows."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.scoring.row_set import RowSet, contains_keys, list_files, list_keys, make_row_set, slice_rows

CONTAINER = 1 << 16

keys = st.integers(0, 3).flatmap(
    lambda file: st.sampled_from([0, 7, CONTAINER - 3, CONTAINER, 2 * CONTAINER - 1, 5 * CONTAINER + 4]).flatmap(
        lambda start: st.integers(0, 40).map(lambda row: (file << 52) + start + row)  # larger than a float represents exactly
    )
)
blocks = st.lists(
    st.lists(keys, max_size=30) | st.tuples(keys, st.integers(1, 200)).map(lambda run: list(range(run[0], sum(run)))),
    max_size=6,
)


@given(blocks, st.lists(keys, min_size=1, max_size=50))
def test_a_set_contains_exactly_the_added_keys(added: list[list[int]], queried: list[int]) -> None:
    rows = RowSet().union(*(make_row_set(np.array(block, np.int64)) for block in added))
    plain = {key for block in added for key in block}
    assert list_keys(rows).tolist() == sorted(plain)
    assert contains_keys(rows, np.array(queried, np.int64)).tolist() == [key in plain for key in queried]
    low = queried[0]
    high = low + 4 * CONTAINER
    assert list_keys(slice_rows(rows, low, high)).tolist() == sorted(key for key in plain if low <= key < high)
    assert list_files(rows) == {key >> 32 for key in plain}
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_memory_grows_with_blocks_to_at_most_a_bit_per_row() -> None:
    rows = 4_000_000
    order = np.random.default_rng(0).permutation(rows // 1000).tolist()

    def bytes_of(blocks: list[int], step: int) -> int:
        row_set = RowSet()
        for block in blocks:
            row_set |= make_row_set(np.arange(block * 1000, (block + 1) * 1000, step))
        assert len(row_set) == len(blocks) * 1000 // step
        return len(row_set.serialize())

    assert bytes_of(order, 1) < rows / 1000  # all committed, in any order
    assert bytes_of(order[: len(order) // 2], 1) < rows / 100  # half of the blocks, at random
    assert bytes_of(order, 2) < rows / 7  # every other row: one bit per row, plus overhead
