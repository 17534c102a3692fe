"""What Ray Data has committed of a run that is under way or broke off, by the keys of its rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, group_sizes
from ragassay.jobs.output.commits import COMMITTED, committed_files
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.partitions import partitions as raw_files
from ragassay.jobs.scoring.row_set import RowSet, add_keys, files_of, holds, within
from ragassay.jobs.storage.folder import READERS, Folder, read_table, writing
from ragassay.pipeline.arrays import Ints

CHECKPOINT = "_checkpoint"
Found = TypeVar("Found")

AT_ONCE = 256  # files whose keys are in memory together


class CommittedRows:
    """Counts the rows in the checkpoint files that Ray has committed; each file is read once."""

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
        """Rows committed by now."""
        new = [path for path in committed_files(self._output, CHECKPOINT) if path not in self._rows]
        self._rows.update(zip(new, _look(self._output, new, self._count), strict=True))
        return sum(self._rows.values())

    def _count(self, keys: Ints) -> int:
        return int(np.isin(keys >> 32, self._files).sum())


def committed_rows(output: Folder) -> RowSet:
    """All rows in the checkpoint."""
    committed = RowSet()
    for keys in _look(output, committed_files(output, CHECKPOINT), lambda keys: keys):
        add_keys(committed, keys)
    committed.run_optimize()
    return committed


def begun_files(output: Folder) -> set[int]:
    """Numbers of the input files of which the checkpoint holds rows."""
    return files_of(committed_rows(output))


def reopen_files(output: Folder, partitions: Mapping[str, Collection[int]]) -> None:
    """Commit the rows of scored files again, so that a run which is to score more of them knows them.

    Args:
        output: The output folder.
        partitions: Hive path -> numbers of the files in it.
    """
    if not partitions:
        return
    raw = {hive_path(place): paths for place, paths in raw_files(output, "raw").items()}
    for partition, numbers in partitions.items():
        _reopen(output, np.array(list(numbers), dtype=np.int64), raw.get(partition, []))


def _reopen(output: Folder, numbers: Ints, raw: Sequence[str]) -> None:
    rows = np.concatenate([np.empty(0, np.int64), *_look(output, raw, lambda keys: keys[np.isin(keys >> 32, numbers)])])
    with writing(output.fs, output.path(f"{CHECKPOINT}/reopened-{numbers.min()}{COMMITTED}")) as stream:
        pq.write_table(pa.table({"row_key": pa.array(rows, pa.int64())}), stream)


def unfinished_files(output: Folder, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet]) -> set[int]:
    """Which files have rows that are to be scored and are not committed.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.
        chosen: Number -> its chosen rows, where only these are to be scored.
    """
    done = committed_rows(output)
    return {number for number, file in files.items() if not _is_done(done, number << 32, file.rows or 0, chosen.get(number))}


def _is_done(done: RowSet, first: int, rows: int, chosen: RowSet | None) -> bool:
    """Whether of some rows, the first of which has this `row_key`, all are done that are to be."""
    if chosen is None:
        return done.range_cardinality(first, first + rows) == rows
    return within(chosen, first, first + rows) <= done


def drop_finished(output: Folder, unfinished: Collection[int]) -> None:
    """Delete what the checkpoint knows of files that are scored; of none else, all of it.

    Args:
        output: The output folder.
        unfinished: Numbers of the files that are not scored.
    """
    kept = 0
    wanted = np.array(list(unfinished), dtype=np.int64)
    paths = committed_files(output, CHECKPOINT)
    for path, needed in zip(paths, _look(output, paths, lambda keys: bool(np.isin(keys >> 32, wanted).any())), strict=True):
        if needed:
            kept += 1
        else:
            output.fs.delete_file(path)
    if not kept:
        output.delete(CHECKPOINT)


def open_groups(
    output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet] | None = None
) -> dict[int, dict[int, RowSet]]:
    """Row groups of input files that hold rows which are not committed; the others need not be read again.

    Args:
        output: The output folder.
        fs: The input's file system.
        files: Number in the manifest -> input file.
        chosen: Number -> its chosen rows, where only these are to be scored.

    Returns:
        Number -> its open row groups, in order -> those of their rows that are committed.
    """
    committed = committed_rows(output)
    return {
        number: _open_groups(fs, file, number << 32, committed, (chosen or {}).get(number)) for number, file in files.items()
    }


def without_committed(tables: Iterable[pa.Table], committed: RowSet) -> Iterator[pa.Table]:
    """Log rows that are not committed.

    Args:
        tables: Log rows.
        committed: Those that are.

    Yields:
        The tables less those rows; none is empty.
    """
    for table in tables:
        left = table.filter(~holds(committed, table["row_key"].to_numpy()))
        if left.num_rows:
            yield left


def _open_groups(fs: pafs.FileSystem, file: LogFile, first: int, committed: RowSet, chosen: RowSet | None) -> dict[int, RowSet]:
    """Open row groups of one file, whose first row has this `row_key`, and what is committed of them."""
    done = committed.range_cardinality(first, first + (file.rows or 0))
    if not done and chosen is None:
        return dict.fromkeys(range(file.row_groups), RowSet())
    if done == file.rows:
        return {}
    ends = list(accumulate(group_sizes(fs, file), initial=first))
    return {
        group: within(committed, start, stop)
        for group, (start, stop) in enumerate(pairwise(ends))
        if not _is_done(committed, start, stop - start, chosen)
    }


def _look(output: Folder, paths: Sequence[str], look: Callable[[Ints], Found]) -> Iterator[Found]:
    """What a function makes of the keys in each of some files. Many files are read at a time, and few are in memory."""

    def found(path: str) -> Found:
        keys: pa.ChunkedArray = read_table(output.fs, path, ["row_key"])["row_key"]
        return look(np.asarray(keys.to_numpy(), dtype=np.int64))

    with ThreadPoolExecutor(READERS) as readers:
        for at in range(0, len(paths), AT_ONCE):
            yield from readers.map(found, paths[at : at + AT_ONCE])
