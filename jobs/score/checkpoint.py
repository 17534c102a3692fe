"""What Ray Data has committed of a run that is under way or broke off, by the keys of its rows."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, group_sizes
from ragassay.jobs.storage import READERS, Folder, writing
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


def committed_keys(output: Folder) -> Ints:
    """`row_key`s of all rows in the checkpoint, in order, each once."""
    keys = np.concatenate([np.empty(0, dtype=np.int64), *_read_keys(output, _committed_files(output))])
    return np.unique(keys)


def of_file(keys: Ints, number: int) -> Ints:
    """Of `row_key`s in order, those of an input file."""
    return keys[slice(*np.searchsorted(keys, [number << 32, (number + 1) << 32]))]


def reopen(output: Folder, number: int, raw: Sequence[str]) -> None:
    """Commit the rows of a scored file again, so that a run which is to score more of it knows them.

    Args:
        output: The output folder.
        number: Of the file.
        raw: Files of `raw/` that may hold its rows.
    """
    keys = [_keys_in(output, path) for path in raw]
    mine = of_file(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *keys])), number)
    with writing(output.fs, output.path(f"{CHECKPOINT}/reopened-{number}{_COMMITTED}")) as stream:
        pq.write_table(pa.table({"row_key": pa.array(mine, pa.int64())}), stream)


def unfinished_files(output: Folder, files: Mapping[int, LogFile], chosen: Mapping[int, Ints]) -> set[int]:
    """Which files have rows that are to be scored and are not committed.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.
        chosen: Number -> `row_key`s of its chosen rows, where only these are to be scored.
    """
    keys = committed_keys(output)
    done = {number: of_file(keys, number) for number in files}
    return {
        number
        for number, file in files.items()
        if (len(np.setdiff1d(chosen[number], done[number])) if number in chosen else len(done[number]) < (file.rows or 0))
    }


def drop_finished(output: Folder, unfinished: Collection[int]) -> None:
    """Delete what the checkpoint knows of files that are scored; of none else, all of it.

    Args:
        output: The output folder.
        unfinished: Numbers of the files that are not scored.
    """
    kept = 0
    wanted = np.array(list(unfinished), dtype=np.int64)
    paths = _committed_files(output)
    for path, keys in zip(paths, _read_keys(output, paths), strict=True):
        if np.isin(keys >> 32, wanted).any():
            kept += 1
        else:
            output.fs.delete_file(path)
    if not kept:
        output.delete(CHECKPOINT)


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


def open_groups(
    output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile], chosen: Mapping[int, Ints] | None = None
) -> dict[int, dict[int, Ints]]:
    """Row groups of input files that hold rows which are not committed; the others need not be read again.

    Args:
        output: The output folder.
        fs: The input's file system.
        files: Number in the manifest -> input file.
        chosen: Number -> `row_key`s of its chosen rows, in order, where only these are to be scored.

    Returns:
        Number -> its open row groups -> the `row_key`s, in order, of those of their rows that are committed.
    """
    keys = committed_keys(output)
    return {
        number: _open_groups(fs, file, number << 32, of_file(keys, number), (chosen or {}).get(number))
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


def _open_groups(fs: pafs.FileSystem, file: LogFile, first: int, committed: Ints, chosen: Ints | None) -> dict[int, Ints]:
    """Open row groups of one file, whose first row has this `row_key`, and their committed rows; see `open_groups`.

    These are copies: a view would keep the keys of all files in memory.
    """
    if chosen is not None:
        left = np.setdiff1d(chosen, committed, assume_unique=True)
        ends = first + np.cumsum(group_sizes(fs, file), dtype=np.int64)
        wanted = np.unique(np.searchsorted(ends, left, side="right"))
        parts = np.split(committed, np.searchsorted(committed, ends[:-1]))
        return {int(group): parts[group].copy() for group in wanted}
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
    with ThreadPoolExecutor(READERS) as readers:
        return readers.map(lambda path: _keys_in(output, path), paths)


def _keys_in(output: Folder, path: str) -> Ints:
    found: pa.ChunkedArray = pq.read_table(path, filesystem=output.fs, partitioning=None, columns=["row_key"])["row_key"]
    return np.asarray(found.to_numpy(), dtype=np.int64)
