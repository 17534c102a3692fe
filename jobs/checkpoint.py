"""What Ray Data has committed of a run that is under way or broke off, by the keys of its rows."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from jobs.logs import LogFile
from jobs.storage import Folder

CHECKPOINT = "_checkpoint"
_PENDING, _COMMITTED = ".pending.parquet", ".parquet"
READERS = 16  # an object store answers slowly, but many at once

Keys = npt.NDArray[np.int64]


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
        for path in _committed_files(self._output):
            if path not in self._rows:
                self._rows[path] = int(np.isin(_keys(self._output, path) >> 32, self._files).sum())
        return sum(self._rows.values())


def clear_moved(output: Folder) -> None:
    """Delete pending checkpoint files that are committed too.

    A commit renames a file, which object stores do by copy and delete. Were it killed between, Ray would find the pending one
    and delete its rows' data, though they are committed and so never scored again.
    """
    found = set(_checkpoint_files(output))
    for path in found:
        if path.endswith(_PENDING) and path.removesuffix(_PENDING) + _COMMITTED in found:
            output.fs.delete_file(path)


def groups_to_read(output: Folder, fs: pafs.FileSystem, files: Mapping[int, LogFile]) -> dict[int, list[int]]:
    """Row groups of input files that hold rows which are not committed; the others need not be read again.

    Args:
        output: The output folder.
        fs: The input's file system.
        files: Number in the manifest -> input file.

    Returns:
        Number -> its row groups, in order.
    """
    with ThreadPoolExecutor(READERS) as readers:
        parts = list(readers.map(lambda path: _keys(output, path), _committed_files(output)))
    keys = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    return {
        number: _open_groups(fs, file, keys[slice(*np.searchsorted(keys, [number << 32, (number + 1) << 32]))] & 0xFFFFFFFF)
        for number, file in files.items()
    }


def _open_groups(fs: pafs.FileSystem, file: LogFile, committed: Keys) -> list[int]:
    """Row groups of a file, given the numbers of its rows that are committed."""
    if not len(committed):
        return list(range(file.row_groups))
    if len(committed) == file.rows:
        return []
    with pq.ParquetFile(file.fs_path, filesystem=fs) as parquet:
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(file.row_groups)]
    place = np.searchsorted(np.cumsum(sizes), committed, side="right")
    done = np.bincount(place, minlength=len(sizes))
    return [group for group, size in enumerate(sizes) if done[group] < size]


def _checkpoint_files(output: Folder) -> list[str]:
    selector = pafs.FileSelector(output.path(CHECKPOINT), allow_not_found=True)
    return [info.path for info in output.fs.get_file_info(selector)]


def _committed_files(output: Folder) -> list[str]:
    return [path for path in _checkpoint_files(output) if path.endswith(_COMMITTED) and not path.endswith(_PENDING)]


def _keys(output: Folder, path: str) -> Keys:
    keys: pa.ChunkedArray = pq.read_table(path, filesystem=output.fs, partitioning=None)["row_key"]
    return np.asarray(keys.to_numpy(), dtype=np.int64)
