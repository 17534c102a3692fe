"""Rows with the same context follow each other."""

from itertools import groupby

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.scoring.context_order import cluster_by_context

ROWS = st.lists(
    st.tuples(st.none() | st.lists(st.none() | st.sampled_from("ab"), max_size=2), st.none() | st.sampled_from("qr")),
    max_size=30,
)
SCHEMA = pa.schema([("row_key", pa.int64()), ("context", pa.list_(pa.string())), ("question", pa.string())])


def tables(rows: list[tuple[list[str | None] | None, str | None]], size: int) -> list[pa.Table]:
    dicts = [{"row_key": i, "context": c, "question": q} for i, (c, q) in enumerate(rows)]
    return [pa.Table.from_pylist(dicts[i : i + size], schema=SCHEMA) for i in range(0, len(dicts), size)]


@given(ROWS, st.integers(1, 7), st.sampled_from([1e-5, 1e-4, 1.0]))
def test_no_row_is_lost_or_changed(rows: list[tuple[list[str | None] | None, str | None]], size: int, mib: float) -> None:
    out = [row for table in cluster_by_context(tables(rows, size), mib) for row in table.to_pylist()]
    assert sorted(row["row_key"] for row in out) == list(range(len(rows)))
    assert all((row["context"], row["question"]) == rows[row["row_key"]] for row in out)


@given(ROWS, st.integers(1, 7))
def test_rows_with_the_same_context_follow_each_other(
    rows: list[tuple[list[str | None] | None, str | None]], size: int
) -> None:
    out = [row for table in cluster_by_context(tables(rows, size), 1.0) for row in table.to_pylist()]
    stretches = [key for key, _ in groupby(out, key=lambda row: [passage or "" for passage in row["context"] or []])]
    assert len(stretches) == len({tuple(key) for key in stretches})


def test_the_size_of_a_stretch_is_limited() -> None:
    big = tables([(["x" * 1000], "q")] * 100, 10)
    (first, *_) = cluster_by_context(iter(big), 0.02)
    assert first.num_rows <= 30
