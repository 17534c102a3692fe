"""What Ray Data has committed of a run that is under way or broke off, by the keys of its rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, group_sizes
from ragassay.jobs.storage import READERS, Folder
from ragassay.pipeline.arrays import Ints

CHECKPOINT = "_checkpoint"
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
        for path, keys in zip(new, _read_keys(self._output, new), strict=True):
            self._rows[path] = int(np.isin(keys >> 32, self._files).sum())
        return sum(self._rows.values())


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


def open_groups(output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile]) -> dict[int, dict[int, Ints]]:
    """Row groups of input files that hold rows which are not committed; the others need not be read again.

    Args:
        output: The output folder.
        fs: The input's file system.
        files: Number in the manifest -> input file.

    Returns:
        Number -> its open row groups -> the `row_key`s, in order, of those of their rows that are committed.
    """
    keys = np.concatenate([np.empty(0, dtype=np.int64), *_read_keys(output, _committed_files(output))])
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return {
        number: _open_groups(fs, file, number << 32, keys[slice(*np.searchsorted(keys, [number << 32, (number + 1) << 32]))])
        for number, file in files.items()
    }


def without_committed(tables: Iterable[pa.Table], committed: Ints) -> Iterator[pa.Table]:
    """Log rows that are not committed.

    Args:
        tables: Log rows; each table is in the order of its `row_key`s.
        committed: `row_key`s, in order.

    Yields:
        The tables less those rows; none is empty.
    """
    for table in tables:
        keys = table["row_key"].to_numpy()
        near = committed[slice(*np.searchsorted(committed, [keys[0], keys[-1] + 1]))] if len(keys) else committed
        left = table.filter(~np.isin(keys, near))
        if left.num_rows:
            yield left


def _open_groups(fs: pafs.FileSystem, file: LogFile, first: int, committed: Ints) -> dict[int, Ints]:
    """Open row groups of one file, whose first row has this `row_key`, and their committed rows.

    These are copies: a view would keep the keys of all files in memory.
    """
    if not len(committed):
        return dict.fromkeys(range(file.row_groups), committed.copy())
    if len(committed) == file.rows:
        return {}
    sizes = group_sizes(fs, file)
    parts = np.split(committed, np.searchsorted(committed, first + np.cumsum(sizes[:-1], dtype=np.int64)))
    return {group: part.copy() for group, (size, part) in enumerate(zip(sizes, parts, strict=True)) if len(part) < size}


def _checkpoint_files(output: Folder, checkpoint: str = CHECKPOINT) -> list[str]:
    return [info.path for info in output.list(checkpoint, _COMMITTED)]


def _committed_files(output: Folder, checkpoint: str = CHECKPOINT) -> list[str]:
    return [path for path in _checkpoint_files(output, checkpoint) if not path.endswith(_PENDING)]


def _read_keys(output: Folder, paths: Sequence[str]) -> Iterable[Ints]:
    def keys(path: str) -> Ints:
        found: pa.ChunkedArray = pq.read_table(path, filesystem=output.fs, partitioning=None)["row_key"]
        return np.asarray(found.to_numpy(), dtype=np.int64)

    with ThreadPoolExecutor(READERS) as readers:
        return readers.map(keys, paths)
