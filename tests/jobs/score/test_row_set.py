"""A set of rows holds what a set of numbers holds, and takes memory by blocks and not by rows."""

import pickle
import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.score.row_set import CHUNK, RowSet, joined

HERE = 1 << CHUNK

keys = st.integers(0, 3).flatmap(
    lambda file: st.sampled_from([0, 7, HERE - 3, HERE, 2 * HERE - 1, 5 * HERE + 4]).flatmap(
        lambda start: st.integers(0, 40).map(lambda row: (file << 32) + start + row)
    )
)
blocks = st.lists(
    st.lists(keys, max_size=30) | st.tuples(keys, st.integers(1, 3 * HERE)).map(lambda run: list(range(run[0], sum(run)))),
    max_size=6,
)


def set_of(added: list[list[int]]) -> RowSet:
    rows = RowSet()
    for block in added:
        rows.add(np.array(block, np.int64))
    return rows


@given(blocks, st.lists(keys, min_size=1, max_size=50))
def test_it_holds_what_was_added(added: list[list[int]], asked: list[int]) -> None:
    rows, plain = set_of(added), {key for block in added for key in block}
    assert len(rows) == len(plain) and bool(rows) == bool(plain)
    asked = sorted(asked)
    assert rows.holds(np.array(asked, np.int64)).tolist() == [key in plain for key in asked]
    low, high = asked[0], asked[-1]
    if high - low <= 4 * HERE:
        assert rows.count(low, high) == sum(low <= key < high for key in plain)
        assert rows.rows(low, high).tolist() == sorted(key for key in plain if low <= key < high)
    assert rows.files == {key >> 32 for key in plain}
    moved = rows.shifted(5 << 32)
    assert moved.holds(np.array(asked, np.int64) + (5 << 32)).tolist() == [key in plain for key in asked]
    parts = [rows.near(key, key + 1) for key in asked]
    assert pickle.loads(pickle.dumps(joined(parts))).holds(np.array(asked)).tolist() == [key in plain for key in asked]


@given(st.lists(keys, max_size=60), st.randoms())
def test_order_and_repetition_make_no_difference(added: list[int], random: "np.random.Generator") -> None:
    mixed = [*added, *added[: len(added) // 2]]
    random.shuffle(mixed)
    one, other = set_of([added]), set_of([[key] for key in mixed])
    assert pickle.dumps(sorted(one.near(0, 4 << 32)._chunks)) == pickle.dumps(sorted(other.near(0, 4 << 32)._chunks))
    assert len(one) == len(other) == len(set(added))


def test_memory_is_by_blocks_and_never_more_than_a_bit_a_row() -> None:
    rows = 4_000_000
    order = np.random.default_rng(0).permutation(rows // 1000)

    def bytes_of(blocks: "np.ndarray[tuple[int], np.dtype[np.int64]]", step: int) -> int:
        tracemalloc.start()
        held = RowSet()
        for block in blocks.tolist():
            held.add(np.arange(block * 1000, (block + 1) * 1000, step))
        found, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(held) == len(blocks) * 1000 // step
        return found

    assert bytes_of(order, 1) < rows / 100  # all committed, in any order
    assert bytes_of(order[: len(order) // 2], 1) < rows / 7  # half of the blocks, at random
    assert bytes_of(order, 2) < rows / 7  # every other row: a bit each, and what holds them
