"""Rows of a partition of `raw/` in the order of the input, however they were cut into files."""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from ragassay.jobs.output.partitions import BATCH_ROWS
from ragassay.jobs.output.scored_dataset import ScoredDataset, read_file


def in_input_order(raw: ScoredDataset, shape: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows by their `row_key`: files hold blocks of input rows, which were committed as they got ready.

    A block of a run that went on may have a hole where another file's rows belong, and with `cluster_mib` rows stand by their
    contexts. What a file holds beyond the next one's first row waits in memory; elsewhere that is one file at a time.

    Args:
        raw: The partition's scores; no file is empty.
        shape: Gives rows the columns and types that all have.

    Yields:
        All rows, in batches of at most BATCH_ROWS.
    """
    ordered = sorted(raw.files, key=raw.first_key)
    held: list[pa.Table] = []
    for file, following in zip_longest(ordered, ordered[1:]):
        rows = pa.Table.from_batches(shape(part.batch) for part in read_file(raw.fs, file))
        table = _sorted(pa.concat_tables([*held, rows], promote_options="permissive"))
        ready = len(table) if following is None else int(np.searchsorted(table["row_key"].to_numpy(), raw.first_key(following)))
        yield from table.slice(0, ready).to_batches(BATCH_ROWS)
        held = [table.slice(ready)] if ready < len(table) else []


def _sorted(table: pa.Table) -> pa.Table:
    keys = table["row_key"].to_numpy()
    return table if (keys[1:] > keys[:-1]).all() else table.take(np.argsort(keys, kind="stable"))
