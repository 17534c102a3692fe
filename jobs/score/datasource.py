"""What plan 1 reads: the rows of the input that are not committed yet, as a Ray datasource."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.input import LogFile, Logs, read_logs
from ragassay.jobs.score.checkpoint import without_committed
from ragassay.jobs.score.context_order import cluster_by_context
from ragassay.jobs.score.row_set import RowSet, joined

MAX_TASKS = 64
"""Read tasks of one file: enough to read a huge one in parallel."""


def open_rows(job: Job, logs: Logs, files: Mapping[int, LogFile], groups: Mapping[int, Mapping[int, RowSet]]) -> Any:
    """A Ray datasource over the rows of the files that are not committed.

    Args:
        job: The job.
        logs: The input.
        files: Number in the manifest -> file.
        groups: As `open_groups` gives them; a read task takes neighbouring ones of one file.
    """
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    fs, passthrough = logs.fs, logs.passthrough  # a read task carries what it names, and `logs` names all files
    parts = [
        (number, part, _put(joined(groups[number][group] for group in part)))
        for number in files
        for part in _parts(list(groups[number]))
    ]

    def read_task(number: int, part: Sequence[int], committed: Any, limit: int | None) -> Any:
        file = files[number]

        def read() -> Iterator[pa.Table]:
            tables = read_logs(fs, file, number, part, job.columns, passthrough, job.on_bad_file == "skip")
            if committed is not None:
                tables = without_committed(tables, ray.get(committed))
            return cluster_by_context(tables, job.cluster_mib) if job.cluster_mib else tables

        metadata = BlockMetadata(num_rows=None, size_bytes=file.size, input_files=[file.uri], exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)

    class LogsSource(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return sum(file.size for file in files.values())

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [read_task(*part, per_task_row_limit) for part in parts]

    return LogsSource()


def _put(committed: RowSet) -> Any:
    """A reference to a set in Ray's object store, since a read task has no room for much; None for an empty one."""
    import ray

    return ray.put(committed) if committed else None


def _parts(groups: Sequence[int]) -> list[Sequence[int]]:
    """Row groups of a file, a part for each read task."""
    step = max(1, -(-len(groups) // MAX_TASKS))
    return [groups[at : at + step] for at in range(0, len(groups), step)]
