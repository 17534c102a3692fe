"""Rows to look at before a job runs: stretches of neighbouring rows, spread over the log, so that shared contexts show."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from jobs.config import Columns
from jobs.logs import LogFile, Logs, read_logs

STRETCHES = 16
"""Stretches that a sample is made of, where the log is larger than the sample."""

DEEPEST = 10_000
"""A stretch begins within so many rows of its row group's start, since all rows before it have to be decoded too."""


def read_sample(logs: Logs, columns: Columns, rows: int, seed: int = 0) -> list[pa.Table]:
    """Stretches of neighbouring rows, of the schema `logs`, about so many rows in all: the whole log, if it has no more.

    Rows in data pages that can't be read have the status unreadable.

    Args:
        logs: The input; its columns are checked.
        columns: Our columns' names in it.
        rows: Rows wanted.
        seed: Of the places.
    """
    files = [file for file in logs.files if file.rows]
    total = sum(file.rows or 0 for file in files)
    if total <= rows:
        return [_read(logs, columns, file, group, 0, total) for file in files for group in range(file.row_groups)]
    length, rng = -(-rows // STRETCHES), Random(seed)
    places = [rng.randrange(k * total // STRETCHES, (k + 1) * total // STRETCHES) for k in range(STRETCHES)]
    begins: dict[tuple[str, int], int] = {}
    for file, place in _by_file(files, places):
        with pq.ParquetFile(file.fs_path, filesystem=logs.fs) as parquet:
            sizes = [parquet.metadata.row_group(g).num_rows for g in range(file.row_groups)]
        group = next(g for g in range(len(sizes)) if place < sum(sizes[: g + 1]))
        inside = min(place - sum(sizes[:group]), max(0, sizes[group] - length), DEEPEST)
        begins.setdefault((file.path, group), inside)  # one a row group: stretches must not overlap
    by_path = {file.path: file for file in files}
    return [_read(logs, columns, by_path[path], group, begin, begin + length) for (path, group), begin in begins.items()]


def _by_file(files: Sequence[LogFile], places: Sequence[int]) -> list[tuple[LogFile, int]]:
    """Rows of the whole log -> file, and row in it."""
    ends = np.cumsum([file.rows for file in files])
    found = np.searchsorted(ends, places, side="right")
    return [(files[i], place - int(ends[i]) + (files[i].rows or 0)) for i, place in zip(found, places, strict=True)]


def _read(logs: Logs, columns: Columns, file: LogFile, group: int, start: int, end: int) -> pa.Table:
    tables: list[pa.Table] = []
    row = 0
    for table in read_logs(logs.fs, file, 0, range(group, group + 1), columns, pa.schema([]), True):
        part = table.slice(max(0, start - row), max(0, end - max(row, start)))
        tables.append(part)
        row += table.num_rows
        if row >= end:
            break
    return pa.concat_tables(tables)
