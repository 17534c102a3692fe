"""Rows in are rows out: what stands in `raw/`, counted against the footers of the input."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input import LogFile
from ragassay.jobs.output.partitions import batches, hive_path, partitions
from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import BalanceError
from ragassay.schemas.columns import USAGE, Status


def count_scored(output: Folder, files: Mapping[int, LogFile]) -> tuple[Counter[str], dict[str, dict[str, float]], int]:
    """Count the rows of these files in `raw/` against their footers, and add up statuses, usage and sentences.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.

    Returns:
        Rows by status; prompts, tokens, engine and idle seconds a member; sentences of the rows with status ok.

    Raises:
        BalanceError: A row is missing or doubled; the files are named.
    """
    keys: list[pa.Array] = []
    statuses: Counter[str] = Counter()
    usage: dict[str, dict[str, float]] = {}
    sentences = 0
    wanted = {file.partition_path for file in files.values()}
    paths = [p for place, found in partitions(output, "raw").items() if hive_path(place) in wanted for p in found]
    numbers = pa.array(list(files), pa.int64())
    for batch in batches(output.fs, paths, ["row_key", "status", "usage", "sentences.list.element.start"]):
        mine = batch.filter(pc.is_in(pc.shift_right(batch["row_key"], 32), numbers))
        keys.append(mine["row_key"])
        statuses.update(mine["status"].to_pylist())
        good = mine.filter(pc.equal(mine["status"], Status.OK.value))
        sentences += pc.sum(pc.list_value_length(good["sentences"])).as_py() or 0
        _add_usage(usage, mine["usage"].flatten())
    found = np.concatenate([k.to_numpy() for k in keys]) if keys else np.array([], dtype=np.int64)
    _check_rows(found, files)
    return statuses, usage, sentences


def _check_rows(found: "np.ndarray[Any, np.dtype[np.int64]]", files: Mapping[int, LogFile]) -> None:
    unique = np.unique(found)
    rows = dict(zip(*np.unique(found >> 32, return_counts=True), strict=True))
    once = dict(zip(*np.unique(unique >> 32, return_counts=True), strict=True))
    faults = [
        f"{file.path}: {file.rows} rows in, {rows.get(number, 0)} out, {once.get(number, 0)} of them different"
        for number, file in files.items()
        if not file.rows == rows.get(number, 0) == once.get(number, 0)
    ]
    if faults:
        raise BalanceError("rows in raw/ are not the rows of the input:\n  " + "\n  ".join(faults))


def _add_usage(total: dict[str, dict[str, float]], structs: pa.StructArray) -> None:
    if not len(structs):
        return
    sums = (
        pa.Table.from_struct_array(structs)
        .group_by("name")
        .aggregate([(field.name, "sum") for field in USAGE if field.name != "name"])
    )
    for row in sums.to_pylist():
        entry = total.setdefault(row.pop("name"), {})
        for key, value in row.items():
            name = key.removesuffix("_sum")
            entry[name] = entry.get(name, 0) + value
