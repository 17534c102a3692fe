"""What Ray Data has committed of a run that is under way or broke off, by the keys of its rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, group_sizes
from ragassay.jobs.score.row_set import RowSet
from ragassay.jobs.storage import READERS, Folder
from ragassay.pipeline.arrays import Ints

CHECKPOINT = "_checkpoint"
Found = TypeVar("Found")

AT_ONCE = 256  # files whose keys are in memory together
_PENDING, _COMMITTED = ".pending.parquet", ".parquet"  # the second is the end of both


class CommittedRows:
    """Counts the rows in the checkpoint files that Ray has committed; each file is read once."""

    def __init__(self, output: Folder, files: Iterable[int], checkpoint: str = CHECKPOINT) -> None:
        """Start counting.

        Args:
            output: The output folder.
            files: Numbers of the input files whose rows count.
            checkpoint: The folder in it in which Ray commits.
        """
        self._output, self._checkpoint = output, checkpoint
        self._files = np.array(list(files), dtype=np.int64)
        self._rows: dict[str, int] = {}

    def __call__(self) -> int:
        """Rows committed by now."""
        new = [path for path in _committed_files(self._output, self._checkpoint) if path not in self._rows]
        self._rows.update(zip(new, _look(self._output, new, self._count), strict=True))
        return sum(self._rows.values())

    def _count(self, keys: Ints) -> int:
        return int(np.isin(keys >> 32, self._files).sum())


def clear_pending(output: Folder, checkpoint: str = CHECKPOINT, dataset: str = "raw") -> None:
    """Delete what a killed run's unfinished commits left behind, so that their rows are done again.

    Ray writes a pending checkpoint file, then the rows' data, then renames the one to commit the other. Where both stand, an
    object store was renaming by copy and delete, or a task that Ray repeats was writing the data anew: it may be cut off.

    Args:
        output: The output folder.
        checkpoint: The folder in it in which Ray commits.
        dataset: The folder in it with the data.
    """
    paths = _checkpoint_files(output, checkpoint)
    pending = [path for path in paths if path.endswith(_PENDING)]
    if not pending:
        return
    for path in {path.removesuffix(_PENDING) + _COMMITTED for path in pending} & set(paths):
        output.fs.delete_file(path)
    # A data file bears the same name, and a number behind it.
    names = tuple(path.rpartition("/")[2].removesuffix(_PENDING) + "-" for path in pending)
    for info in output.list(dataset, ".parquet"):
        if info.base_name.startswith(names):
            output.fs.delete_file(info.path)
    forget_pending(output, checkpoint)  # last: until then, it tells what is to be deleted


def forget_pending(output: Folder, checkpoint: str = CHECKPOINT) -> None:
    """Delete pending checkpoint files, and nothing else.

    Where every row is known to be committed, what is pending came from a task that Ray had given up, and must not make a later
    run delete data.
    """
    for path in _checkpoint_files(output, checkpoint):
        if path.endswith(_PENDING):
            output.fs.delete_file(path)


def open_groups(output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile]) -> dict[int, dict[int, RowSet]]:
    """Row groups of input files that hold rows which are not committed; the others need not be read again.

    Args:
        output: The output folder.
        fs: The input's file system.
        files: Number in the manifest -> input file.

    Returns:
        Number -> its open row groups, in order -> those of their rows that are committed, and maybe some of their neighbours.
    """
    committed = RowSet()
    for keys in _look(output, _committed_files(output), lambda keys: keys):
        committed.add(keys)
    return {number: _open_groups(fs, file, number << 32, committed) for number, file in files.items()}


def without_committed(tables: Iterable[pa.Table], committed: RowSet) -> Iterator[pa.Table]:
    """Log rows that are not committed.

    Args:
        tables: Log rows; each table is in the order of its `row_key`s.
        committed: Those that are.

    Yields:
        The tables less those rows; none is empty.
    """
    for table in tables:
        left = table.filter(~committed.holds(table["row_key"].to_numpy()))
        if left.num_rows:
            yield left


def _open_groups(fs: pafs.FileSystem, file: LogFile, first: int, committed: RowSet) -> dict[int, RowSet]:
    """Open row groups of one file, whose first row has this `row_key`, and what is committed around them."""
    done = committed.count(first, first + (file.rows or 0))
    if not done:
        return dict.fromkeys(range(file.row_groups), RowSet())
    if done == file.rows:
        return {}
    ends = list(accumulate(group_sizes(fs, file), initial=first))
    return {
        group: committed.near(start, stop)
        for group, (start, stop) in enumerate(pairwise(ends))
        if committed.count(start, stop) < stop - start
    }


def _checkpoint_files(output: Folder, checkpoint: str = CHECKPOINT) -> list[str]:
    return [info.path for info in output.list(checkpoint, _COMMITTED)]


def _committed_files(output: Folder, checkpoint: str = CHECKPOINT) -> list[str]:
    return [path for path in _checkpoint_files(output, checkpoint) if not path.endswith(_PENDING)]


def _look(output: Folder, paths: Sequence[str], look: Callable[[Ints], Found]) -> Iterator[Found]:
    """What a function makes of the keys in each of some files. Many files are read at a time, and few are in memory."""

    def found(path: str) -> Found:
        keys: pa.ChunkedArray = pq.read_table(path, filesystem=output.fs, partitioning=None)["row_key"]
        return look(np.asarray(keys.to_numpy(), dtype=np.int64))

    with ThreadPoolExecutor(READERS) as readers:
        for at in range(0, len(paths), AT_ONCE):
            yield from readers.map(found, paths[at : at + AT_ONCE])
