"""Order rows so that rows with the same context follow each other, before they are cut into blocks.

No text moves between tasks.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ragassay.jobs.input import READ_BATCH_ROWS


def cluster_by_context(tables: Iterable[pa.Table], mib: float) -> Iterator[pa.Table]:
    """Collect rows up to a size, and sort each such stretch by context and question.

    Args:
        tables: Rows of the schema `logs`, in file order.
        mib: Size of a stretch in MiB: the memory of a read task, and the maximum distance that a row moves.

    Yields:
        The same rows, in small tables.
    """
    stretch: list[pa.Table] = []
    size = 0
    for table in tables:
        stretch.append(table)
        size += table.nbytes
        if size >= mib * (1 << 20):
            yield from _sort_by_context(stretch)
            stretch, size = [], 0
    if stretch:
        yield from _sort_by_context(stretch)


def _sort_by_context(tables: list[pa.Table]) -> Iterator[pa.Table]:
    whole = pa.concat_tables(tables)
    keys = [
        ([passage or "" for passage in row["context"] or []], row["question"] or "")
        for row in whole.select(["context", "question"]).to_pylist()
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for start in range(0, len(order), READ_BATCH_ROWS):
        yield whole.take(pa.array(order[start : start + READ_BATCH_ROWS], pa.int64()))
