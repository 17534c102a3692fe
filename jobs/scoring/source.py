"""Read the rows of the input that are not committed."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.jobs.input import read_logs
from ragassay.jobs.runtime.source import Part, Source
from ragassay.jobs.runtime.tasks import Task, share
from ragassay.jobs.scoring.checkpoint import remove_committed
from ragassay.jobs.scoring.context_order import cluster_by_context
from ragassay.jobs.scoring.row_sample import filter_sample
from ragassay.jobs.scoring.row_set import RowSet
from ragassay.jobs.scoring.selection import Selection
from ragassay.pipeline.text.redact import make_redaction, redact_rows
from ragassay.schemas.columns import logs_schema

MAX_TASKS = 64
"""Maximum read tasks per file: enough to read a huge file in parallel."""


def make_source(job: Job, selection: Selection, groups: Mapping[int, Mapping[int, RowSet]]) -> Source:
    """Make a source of the selected rows that are not committed.

    Args:
        job: The job.
        selection: The files and rows to score.
        groups: Open row groups, as `find_open_groups` returns them. A read task reads neighboring groups of one file.
    """
    redaction = make_redaction(job.input.redact)
    # A part is sent to a worker with everything that it refers to; `selection` refers to all files.
    files, deadline, fs, passthrough = selection.files, selection.deadline, selection.logs.fs, selection.logs.passthrough
    parts = [
        (number, part, _share(RowSet().union(*(groups[number][group] for group in part))))
        for number in groups
        for part in _divide(list(groups[number]))
    ]

    def make_part(number: int, part: Sequence[int], committed: Task[RowSet] | None) -> Part:
        file = files[number]
        cut_at, sampled = selection.cut_at.get(number), selection.shares.get(number, 1.0)

        def read() -> Iterator[pa.Table]:
            tables = read_logs(fs, file, number, part, job.input.columns, passthrough, job.input.skips_bad_files)
            if cut_at is not None:
                tables = _before(tables, number << 32 | cut_at)
            if committed is not None:
                tables = remove_committed(tables, committed.result())
            if sampled < 1:
                tables = filter_sample(tables, sampled)
            if deadline is not None:
                tables = stop_at_deadline(tables, deadline)
            if redaction is not None:
                tables = (redact_rows(table, redaction) for table in tables)
            return iter(cluster_by_context(tables, job.runtime.context_order_mib) if job.runtime.context_order_mib else tables)

        return Part(read, file.uri, size=file.size)

    size = sum(files[number].size for number in groups)
    return Source(logs_schema(passthrough), [make_part(*part) for part in parts], size)


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


def _share(committed: RowSet) -> Task[RowSet] | None:
    """Share a set with the parts, which must be small. None for an empty set."""
    return share(committed) if committed else None


def _divide(groups: Sequence[int]) -> list[Sequence[int]]:
    """Divide the row groups of a file among its read tasks."""
    step = max(1, -(-len(groups) // MAX_TASKS))
    return [groups[start : start + step] for start in range(0, len(groups), step)]
