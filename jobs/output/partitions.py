"""List the Parquet files of an output folder's datasets by partition, and parse hive paths."""

import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from ragassay.jobs.storage.folder import Folder

BATCH_ROWS = 8192


def list_partition_files(output: Folder, dataset: str) -> dict[str, list[str]]:
    """List the files of each partition of a dataset: hive path (as on disk) -> paths on the file system."""
    base = len(output.path(dataset)) + 1
    files: dict[str, list[str]] = {}
    for info in output.list(dataset, ".parquet"):
        files.setdefault(info.path[base:].rpartition("/")[0], []).append(info.path)
    return files


def hive_path(folder: str) -> str:
    """Return a hive path with plain values; on disk pyarrow URL-encodes the values, but not the keys."""
    return "/".join(f"{key}={unquote(value)}" if sign else key for key, sign, value in _split_hive_path(folder))


def hive_keys(folder: str) -> dict[str, str]:
    """Return the columns of a hive path: `dt=2026-11-20/tenant=a%20b` is {dt: 2026-11-20, tenant: a b}."""
    return {key: unquote(value) for key, sign, value in _split_hive_path(folder) if sign}


def _split_hive_path(folder: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in folder.split("/")]


def earlier_partitions(partitions: Iterable[str], current: Collection[str], last: int) -> list[str]:
    """Return the partitions before the current ones, within the last values of the first hive key, such as the last 30 days.

    Args:
        partitions: Hive paths of all partitions.
        current: Hive paths of the current partitions, which are excluded.
        last: Number of different values of the first key.
    """
    if not current:
        return []
    end = max(map(natural_key, current))
    earlier = sorted((path for path in partitions if path not in current and natural_key(path) < end), key=natural_key)
    first_keys = list(dict.fromkeys(path.partition("/")[0] for path in earlier))[-last:]
    return [path for path in earlier if path.partition("/")[0] in first_keys]


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key for natural sorting of hive paths: month=9 before month=10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
