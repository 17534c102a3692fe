"""A set of rows holds what a set of numbers holds, and takes memory by blocks and not by rows."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.scoring.row_set import RowSet, files_of, holds, keys_of, row_set, within

HERE = 1 << 16

keys = st.integers(0, 3).flatmap(
    lambda file: st.sampled_from([0, 7, HERE - 3, HERE, 2 * HERE - 1, 5 * HERE + 4]).flatmap(
        lambda start: st.integers(0, 40).map(lambda row: (file << 52) + start + row)  # more than a float keeps apart
    )
)
blocks = st.lists(
    st.lists(keys, max_size=30) | st.tuples(keys, st.integers(1, 200)).map(lambda run: list(range(run[0], sum(run)))),
    max_size=6,
)


@given(blocks, st.lists(keys, min_size=1, max_size=50))
def test_it_holds_what_was_added(added: list[list[int]], asked: list[int]) -> None:
    rows = RowSet().union(*(row_set(np.array(block, np.int64)) for block in added))
    plain = {key for block in added for key in block}
    assert keys_of(rows).tolist() == sorted(plain)
    assert holds(rows, np.array(asked, np.int64)).tolist() == [key in plain for key in asked]
    low = asked[0]
    high = low + 4 * HERE
    assert keys_of(within(rows, low, high)).tolist() == sorted(key for key in plain if low <= key < high)
    assert files_of(rows) == {key >> 32 for key in plain}
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_memory_is_by_blocks_and_never_more_than_a_bit_a_row() -> None:
    rows = 4_000_000
    order = np.random.default_rng(0).permutation(rows // 1000).tolist()

    def bytes_of(blocks: list[int], step: int) -> int:
        held = RowSet()
        for block in blocks:
            held |= row_set(np.arange(block * 1000, (block + 1) * 1000, step))
        assert len(held) == len(blocks) * 1000 // step
        return len(held.serialize())

    assert bytes_of(order, 1) < rows / 1000  # all committed, in any order
    assert bytes_of(order[: len(order) // 2], 1) < rows / 100  # half of the blocks, at random
    assert bytes_of(order, 2) < rows / 7  # every other row: a bit each, and what holds them
