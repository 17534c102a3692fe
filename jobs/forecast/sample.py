"""Rows to look at before a job runs: stretches of neighbouring rows, spread over the log, so that shared contexts show."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import LogFile, Logs, list_row_group_sizes, read_logs

STRETCHES = 16
"""Stretches that a sample is made of, where the log is larger than the sample; a log of so few rows is looked at whole."""

DECODED = 160_000
"""Rows that are decoded in all, about, shared evenly among the row groups looked into: those before a stretch have to be."""


def read_sample(logs: Logs, columns: Columns, rows: int, seed: int = 0, carried: Sequence[str] = ()) -> list[pa.Table]:
    """Stretches of neighbouring rows, of the schema `logs`, about so many rows in all: the whole log, if it has no more.

    Rows in data pages that can't be read have the status unreadable.

    Args:
        logs: The input; its columns are checked.
        columns: Our columns' names in it.
        rows: Rows wanted.
        seed: Of the places.
        carried: Further columns, as strings, under the names that they are carried by.
    """
    files = [file for file in logs.files if file.rows]
    total = sum(file.rows or 0 for file in files)
    if total <= max(rows, STRETCHES):
        groups = [(file, group) for file in files for group in range(file.row_groups)]
        return [table for file, group in groups for table in _read(logs, columns, file, group, [(0, total)], carried)]
    length, rng = -(-rows // STRETCHES), Random(seed)
    places = [rng.randrange(k * total // STRETCHES, (k + 1) * total // STRETCHES) for k in range(STRETCHES)]
    by_path = {file.path: file for file in files}
    wanted: Counter[tuple[str, int]] = Counter()
    sizes: dict[tuple[str, int], int] = {}
    for file, place in _by_file(files, places):
        starts = np.cumsum([0, *list_row_group_sizes(logs.fs, file)])
        group = int(np.searchsorted(starts, place, side="right")) - 1
        wanted[file.path, group] += 1
        sizes[file.path, group] = int(starts[group + 1] - starts[group])
    tables = []
    for (path, group), count in wanted.items():
        reach = max(DECODED // len(wanted), count * length)
        stretches = _stretches(min(sizes[path, group], reach), count, length, rng)
        tables += _read(logs, columns, by_path[path], group, stretches, carried)
    return tables


def _stretches(rows: int, count: int, length: int, rng: Random) -> list[tuple[int, int]]:
    """Places of so many stretches in rows, none of which overlap; all rows as one, where there are no more."""
    slot = rows // count
    if slot <= length:
        return [(0, rows)]
    begins = [k * slot + rng.randrange(slot - length + 1) for k in range(count)]
    return [(begin, begin + length) for begin in begins]


def _by_file(files: Sequence[LogFile], places: Sequence[int]) -> list[tuple[LogFile, int]]:
    """Rows of the whole log -> file, and row in it."""
    ends = np.cumsum([file.rows for file in files])
    found = np.searchsorted(ends, places, side="right")
    return [(files[i], place - int(ends[i]) + (files[i].rows or 0)) for i, place in zip(found, places, strict=True)]


def _read(
    logs: Logs, columns: Columns, file: LogFile, group: int, stretches: Sequence[tuple[int, int]], carried: Sequence[str]
) -> list[pa.Table]:
    """Stretches of a row group's rows, in order, each as one table."""
    parts: list[list[pa.Table]] = [[] for _ in stretches]
    row = 0
    passthrough = pa.schema([(name, pa.string()) for name in carried])
    for table in read_logs(logs.fs, file, 0, [group], columns, passthrough, True):
        for part, (begin, end) in zip(parts, stretches, strict=True):
            if begin < row + table.num_rows and end > row:  # an empty slice would keep the whole table in memory
                part.append(table.slice(max(0, begin - row), end - max(row, begin)))
        row += table.num_rows
        if row >= stretches[-1][1]:
            break
    return [pa.concat_tables(part) for part in parts if part]
