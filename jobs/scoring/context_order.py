"""Put rows over the same context next to each other before they are cut into blocks, without moving text between tasks."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ragassay.jobs.input import READ_ROWS


def cluster_by_context(tables: Iterable[pa.Table], mib: float) -> Iterator[pa.Table]:
    """Gather rows into stretches of about a size, and put each in the order of its contexts and questions.

    Args:
        tables: Rows of the schema `logs`, in file order.
        mib: Size of a stretch in MiB: what a read task holds in memory, and how far rows move.

    Yields:
        The same rows, in small tables.
    """
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= mib * (1 << 20):
            yield from _in_order(held)
            held, size = [], 0
    if held:
        yield from _in_order(held)


def _in_order(tables: list[pa.Table]) -> Iterator[pa.Table]:
    whole = pa.concat_tables(tables)
    keys = [
        ([passage or "" for passage in row["context"] or []], row["question"] or "")
        for row in whole.select(["context", "question"]).to_pylist()
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for start in range(0, len(order), READ_ROWS):
        yield whole.take(pa.array(order[start : start + READ_ROWS], pa.int64()))
