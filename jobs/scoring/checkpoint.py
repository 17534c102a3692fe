"""Read the checkpoint: the keys of the rows that Ray Data has committed in a run that is in progress or was interrupted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, list_row_group_sizes
from ragassay.jobs.output.commits import list_committed_files
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.partitions import list_partition_files as raw_files
from ragassay.jobs.runtime.sink import COMMITTED_SUFFIX
from ragassay.jobs.scoring.row_set import RowSet, add_keys, contains_keys, list_files, slice_rows
from ragassay.jobs.storage.folder import READER_THREADS, Folder, open_atomic, read_table
from ragassay.pipeline.arrays import Ints

CHECKPOINT = "_checkpoint"
Result = TypeVar("Result")

AT_ONCE = 256
"""Maximum number of files whose keys are in memory at the same time."""


class CommittedRowCounter:
    """Counter of the rows in the checkpoint that belong to some input files. Each checkpoint file is read once."""

    def __init__(self, output: Folder, files: Iterable[int]) -> None:
        """Start counting.

        Args:
            output: The output folder.
            files: Numbers of the input files whose rows count.
        """
        self._output = output
        self._files = np.array(list(files), dtype=np.int64)
        self._rows: dict[str, int] = {}

    def __call__(self) -> int:
        """Return the number of rows that are committed now."""
        new = [path for path in list_committed_files(self._output, CHECKPOINT) if path not in self._rows]
        self._rows.update(zip(new, _map_keys(self._output, new, self._count), strict=True))
        return sum(self._rows.values())

    def _count(self, keys: Ints) -> int:
        return int(np.isin(keys >> 32, self._files).sum())


def read_committed_rows(output: Folder) -> RowSet:
    """Read the keys of all rows in the checkpoint."""
    committed = RowSet()
    for keys in _map_keys(output, list_committed_files(output, CHECKPOINT), lambda keys: keys):
        add_keys(committed, keys)
    committed.run_optimize()
    return committed


def find_partly_scored_files(output: Folder) -> set[int]:
    """Find the numbers of the input files that have rows in the checkpoint."""
    return list_files(read_committed_rows(output))


def reopen_files(output: Folder, partitions: Mapping[str, Collection[int]]) -> None:
    """Commit the rows of scored files again, so that a run that scores more rows of these files skips them.

    Args:
        output: The output folder.
        partitions: Hive path -> numbers of the files in the partition.
    """
    if not partitions:
        return
    raw = {hive_path(partition): paths for partition, paths in raw_files(output, "raw").items()}
    for partition, numbers in partitions.items():
        _reopen(output, np.array(list(numbers), dtype=np.int64), raw.get(partition, []))


def _reopen(output: Folder, numbers: Ints, raw: Sequence[str]) -> None:
    rows = np.concatenate([np.empty(0, np.int64), *_map_keys(output, raw, lambda keys: keys[np.isin(keys >> 32, numbers)])])
    with open_atomic(output.fs, output.path(f"{CHECKPOINT}/reopened-{numbers.min()}{COMMITTED_SUFFIX}")) as stream:
        pq.write_table(pa.table({"row_key": pa.array(rows, pa.int64())}), stream)


def find_unfinished_files(output: Folder, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet]) -> set[int]:
    """Find the files that have rows to score that are not committed.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.
        chosen: Number -> keys of the file's rows to score, if these are not all rows.
    """
    committed = read_committed_rows(output)
    return {
        number
        for number, file in files.items()
        if not _is_committed(committed, number << 32, file.rows or 0, chosen.get(number))
    }


def _is_committed(committed: RowSet, first: int, rows: int, chosen: RowSet | None) -> bool:
    """Return whether all rows to score are committed, of `rows` rows whose first `row_key` is `first`."""
    if chosen is None:
        return committed.range_cardinality(first, first + rows) == rows
    return slice_rows(chosen, first, first + rows) <= committed


def drop_finished_files(output: Folder, unfinished: Collection[int]) -> None:
    """Delete the checkpoint files that contain no row of an unfinished file.

    Args:
        output: The output folder.
        unfinished: Numbers of the input files that are not scored.
    """
    kept = 0
    numbers = np.array(list(unfinished), dtype=np.int64)
    paths = list_committed_files(output, CHECKPOINT)
    are_needed = _map_keys(output, paths, lambda keys: bool(np.isin(keys >> 32, numbers).any()))
    for path, is_needed in zip(paths, are_needed, strict=True):
        if is_needed:
            kept += 1
        else:
            output.fs.delete_file(path)
    if not kept:
        output.delete(CHECKPOINT)


def find_open_groups(
    output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet] | None = None
) -> dict[int, dict[int, RowSet]]:
    """Find the row groups of input files that contain rows to score. The other row groups need not be read.

    Args:
        output: The output folder.
        fs: File system of the input.
        files: Number in the manifest -> input file.
        chosen: Number -> keys of the file's rows to score, if these are not all rows.

    Returns:
        Number -> open row groups, in order -> keys of their committed rows.
    """
    committed = read_committed_rows(output)
    return {
        number: _find_open_groups(fs, file, number << 32, committed, (chosen or {}).get(number))
        for number, file in files.items()
    }


def remove_committed(tables: Iterable[pa.Table], committed: RowSet) -> Iterator[pa.Table]:
    """Remove committed rows from tables of log rows.

    Args:
        tables: The tables.
        committed: Keys of the committed rows.

    Yields:
        The tables without these rows; no empty table.
    """
    for table in tables:
        open_rows = table.filter(~contains_keys(committed, table["row_key"].to_numpy()))
        if open_rows.num_rows:
            yield open_rows


def _find_open_groups(
    fs: pafs.FileSystem, file: LogFile, first: int, committed: RowSet, chosen: RowSet | None
) -> dict[int, RowSet]:
    """Find the open row groups of a file whose first `row_key` is `first`, with the keys of their committed rows."""
    committed_count = committed.range_cardinality(first, first + (file.rows or 0))
    if not committed_count and chosen is None:
        return dict.fromkeys(range(file.row_groups), RowSet())
    if committed_count == file.rows:
        return {}
    ends = list(accumulate(list_row_group_sizes(fs, file), initial=first))
    return {
        group: slice_rows(committed, start, stop)
        for group, (start, stop) in enumerate(pairwise(ends))
        if not _is_committed(committed, start, stop - start, chosen)
    }


def _map_keys(output: Folder, paths: Sequence[str], function: Callable[[Ints], Result]) -> Iterator[Result]:
    """Apply a function to the keys of each file, in order. Files are read in parallel, in groups that limit the memory."""

    def apply(path: str) -> Result:
        keys: pa.ChunkedArray = read_table(output.fs, path, ["row_key"])["row_key"]
        return function(np.asarray(keys.to_numpy(), dtype=np.int64))

    with ThreadPoolExecutor(READER_THREADS) as readers:
        for start in range(0, len(paths), AT_ONCE):
            yield from readers.map(apply, paths[start : start + AT_ONCE])
