"""Read the rows of a partition of `raw/` in the order of the input, independent of their files."""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from ragassay.jobs.output.partitions import BATCH_ROWS
from ragassay.jobs.output.scored_dataset import ScoredDataset, read_file


def read_in_input_order(raw: ScoredDataset, shape: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read rows in the order of their `row_key`s.

    A file contains a block of input rows, in the order in which blocks were committed. A block of a resumed run can have a gap
    that rows of another file fill, and with `context_order_mib` rows are sorted by their contexts. Rows of a file after the
    first row of the next file stay in memory; usually this is one file at a time.

    Args:
        raw: Scores of the partition; no file is empty.
        shape: Gives a batch the common columns and types of the partition.

    Yields:
        All rows, in batches of at most BATCH_ROWS.
    """
    ordered = sorted(raw.files, key=raw.first_key)
    pending: list[pa.Table] = []
    for file, following in zip_longest(ordered, ordered[1:]):
        rows = pa.Table.from_batches(shape(part.batch) for part in read_file(raw.fs, file))
        table = _sort_by_key(pa.concat_tables([*pending, rows], promote_options="permissive"))
        ready = len(table) if following is None else int(np.searchsorted(table["row_key"].to_numpy(), raw.first_key(following)))
        yield from table.slice(0, ready).to_batches(BATCH_ROWS)
        pending = [table.slice(ready)] if ready < len(table) else []


def _sort_by_key(table: pa.Table) -> pa.Table:
    keys = table["row_key"].to_numpy()
    return table if (keys[1:] > keys[:-1]).all() else table.take(np.argsort(keys, kind="stable"))
