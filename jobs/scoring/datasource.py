"""What plan 1 reads: the rows of the input that are not committed yet, as a Ray datasource."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.jobs.input import read_logs
from ragassay.jobs.runtime.clean_output import clean_items
from ragassay.jobs.scoring.checkpoint import without_committed
from ragassay.jobs.scoring.context_order import cluster_by_context
from ragassay.jobs.scoring.row_sample import sampled
from ragassay.jobs.scoring.row_set import RowSet
from ragassay.jobs.scoring.selection import Selection
from ragassay.pipeline.text.redact import redacted, redaction_of
from ragassay.schemas.columns import logs_schema

MAX_TASKS = 64
"""Read tasks of one file: enough to read a huge one in parallel."""


def open_rows(job: Job, selection: Selection, groups: Mapping[int, Mapping[int, RowSet]]) -> Any:
    """A Ray datasource over the selected rows that are not committed.

    Args:
        job: The job.
        selection: The files, and which of their rows.
        groups: As `open_groups` gives them; a read task takes neighbouring ones of one file.
    """
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    redaction = redaction_of(job.input.redact)
    # A read task carries what it names, and `selection` names all files.
    files, deadline, fs, passthrough = selection.files, selection.deadline, selection.logs.fs, selection.logs.passthrough
    parts = [
        (number, part, _put(RowSet().union(*(groups[number][group] for group in part))))
        for number in groups
        for part in _parts(list(groups[number]))
    ]

    def read_task(number: int, part: Sequence[int], committed: Any, limit: int | None) -> Any:
        file = files[number]
        stop, share = selection.stops.get(number), selection.shares.get(number, 1.0)

        def read() -> Iterator[pa.Table]:
            tables = read_logs(fs, file, number, part, job.input.columns, passthrough, job.input.skips_bad_files)
            if stop is not None:
                tables = _before(tables, number << 32 | stop)
            if committed is not None:
                tables = without_committed(tables, ray.get(committed))
            if share < 1:
                tables = sampled(tables, share)
            if deadline is not None:
                tables = until(tables, deadline)
            if redaction is not None:
                tables = (redacted(table, redaction) for table in tables)
            return clean_items(cluster_by_context(tables, job.runtime.cluster_mib) if job.runtime.cluster_mib else tables)

        metadata = BlockMetadata(num_rows=None, size_bytes=file.size, input_files=[file.uri], exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)

    class LogsSource(Datasource):  # type: ignore[misc]
        schema = logs_schema(passthrough)

        def estimate_inmemory_data_size(self) -> int | None:
            return sum(files[number].size for number in groups)

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [read_task(*part, per_task_row_limit) for part in parts]

    return LogsSource()


def until(tables: Iterable[pa.Table], deadline: float) -> Iterator[pa.Table]:
    """Tables that come before a point in time (`time.time()`)."""
    for table in tables:
        if time.time() >= deadline:
            return
        yield table


def _before(tables: Iterable[pa.Table], end: int) -> Iterator[pa.Table]:
    """Log rows, in the order of their `row_key`s, before one of these."""
    for table in tables:
        keys = table["row_key"].to_numpy()
        if keys[-1] < end:
            yield table
            continue
        if keys[0] < end:
            yield table.slice(0, int(np.searchsorted(keys, end)))
        return


def _put(committed: RowSet) -> Any:
    """A reference to a set in Ray's object store, since a read task has no room for much; None for an empty one."""
    import ray

    return ray.put(committed) if committed else None


def _parts(groups: Sequence[int]) -> list[Sequence[int]]:
    """Row groups of a file, a part for each read task."""
    step = max(1, -(-len(groups) // MAX_TASKS))
    return [groups[at : at + step] for at in range(0, len(groups), step)]
