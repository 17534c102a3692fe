"""The Parquet files of an output folder's datasets, by partition."""

import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from ragassay.jobs.storage.folder import Folder

BATCH_ROWS = 8192


def partitions(output: Folder, dataset: str) -> dict[str, list[str]]:
    """Files of every partition of `raw` or `scored`: hive path (as on disk) -> paths on the file system."""
    base = len(output.path(dataset)) + 1
    found: dict[str, list[str]] = {}
    for info in output.list(dataset, ".parquet"):
        found.setdefault(info.path[base:].rpartition("/")[0], []).append(info.path)
    return found


def hive_path(place: str) -> str:
    """Hive path with plain values: on disk pyarrow writes them URL-encoded, and keys as they are."""
    return "/".join(f"{key}={unquote(value)}" if sign else key for key, sign, value in _pairs(place))


def hive_keys(place: str) -> dict[str, str]:
    """Columns that a hive path stands for: `dt=2026-11-20/tenant=a%20b` is {dt: 2026-11-20, tenant: a b}."""
    return {key: unquote(value) for key, sign, value in _pairs(place) if sign}


def _pairs(place: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in place.split("/")]


def history(places: Iterable[str], tonight: Collection[str], last: int) -> list[str]:
    """The partitions before tonight's: of the last `last` values of the first hive key, such as the last 30 days.

    Args:
        places: Hive paths of all partitions.
        tonight: Those of tonight, which are no history.
        last: How many different first keys to go back.
    """
    if not tonight:
        return []
    end = max(map(natural, tonight))
    before = sorted((place for place in places if place not in tonight and natural(place) < end), key=natural)
    nights = list(dict.fromkeys(place.partition("/")[0] for place in before))[-last:]
    return [place for place in before if place.partition("/")[0] in nights]


def natural(place: str) -> tuple[tuple[int, str], ...]:
    """Key that sorts hive paths as people do: month=9 before month=10."""
    parts = re.findall(r"\d+|\D+", place)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
