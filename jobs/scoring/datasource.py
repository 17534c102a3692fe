"""Read the rows of the input that are not committed, as a Ray datasource."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.jobs.input import read_logs
from ragassay.jobs.runtime.clean_output import clean_items
from ragassay.jobs.scoring.checkpoint import remove_committed
from ragassay.jobs.scoring.context_order import cluster_by_context
from ragassay.jobs.scoring.row_sample import filter_sample
from ragassay.jobs.scoring.row_set import RowSet
from ragassay.jobs.scoring.selection import Selection
from ragassay.pipeline.text.redact import make_redaction, redact_rows
from ragassay.schemas.columns import logs_schema

MAX_TASKS = 64
"""Maximum read tasks per file: enough to read a huge file in parallel."""


def make_datasource(job: Job, selection: Selection, groups: Mapping[int, Mapping[int, RowSet]]) -> Any:
    """Make a Ray datasource over the selected rows that are not committed.

    Args:
        job: The job.
        selection: The files and rows to score.
        groups: Open row groups, as `find_open_groups` returns them. A read task reads neighboring groups of one file.
    """
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    redaction = make_redaction(job.input.redact)
    # Ray sends a read task with everything that it refers to; `selection` refers to all files.
    files, deadline, fs, passthrough = selection.files, selection.deadline, selection.logs.fs, selection.logs.passthrough
    parts = [
        (number, part, _put(RowSet().union(*(groups[number][group] for group in part))))
        for number in groups
        for part in _divide(list(groups[number]))
    ]

    def read_task(number: int, part: Sequence[int], committed: Any, limit: int | None) -> Any:
        file = files[number]
        cut_at, share = selection.cut_at.get(number), selection.shares.get(number, 1.0)

        def read() -> Iterator[pa.Table]:
            tables = read_logs(fs, file, number, part, job.input.columns, passthrough, job.input.skips_bad_files)
            if cut_at is not None:
                tables = _before(tables, number << 32 | cut_at)
            if committed is not None:
                tables = remove_committed(tables, ray.get(committed))
            if share < 1:
                tables = filter_sample(tables, share)
            if deadline is not None:
                tables = stop_at_deadline(tables, deadline)
            if redaction is not None:
                tables = (redact_rows(table, redaction) for table in tables)
            return clean_items(
                cluster_by_context(tables, job.runtime.context_order_mib) if job.runtime.context_order_mib else tables
            )

        metadata = BlockMetadata(num_rows=None, size_bytes=file.size, input_files=[file.uri], exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)

    class LogsSource(Datasource):  # type: ignore[misc]
        schema = logs_schema(passthrough)
        rows = selection.rows

        def estimate_inmemory_data_size(self) -> int | None:
            return sum(files[number].size for number in groups)

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [read_task(*part, per_task_row_limit) for part in parts]

    return LogsSource()


def stop_at_deadline(tables: Iterable[pa.Table], deadline: float) -> Iterator[pa.Table]:
    """Yield tables until a time (`time.time()`)."""
    for table in tables:
        if time.time() >= deadline:
            return
        yield table


def _before(tables: Iterable[pa.Table], end: int) -> Iterator[pa.Table]:
    """Yield the log rows with `row_key < end`. The rows must be in the order of their keys."""
    for table in tables:
        keys = table["row_key"].to_numpy()
        if keys[-1] < end:
            yield table
            continue
        if keys[0] < end:
            yield table.slice(0, int(np.searchsorted(keys, end)))
        return


def _put(committed: RowSet) -> Any:
    """Put a set into Ray's object store, because read tasks must be small. None for an empty set."""
    import ray

    return ray.put(committed) if committed else None


def _divide(groups: Sequence[int]) -> list[Sequence[int]]:
    """Divide the row groups of a file among its read tasks."""
    step = max(1, -(-len(groups) // MAX_TASKS))
    return [groups[start : start + step] for start in range(0, len(groups), step)]
