"""Rows in are rows out: what stands in `raw/`, counted against the footers of the input."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input import LogFile
from ragassay.jobs.output.partitions import batches, hive_path, partitions
from ragassay.jobs.score.row_set import RowSet
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
    rows: Counter[int] = Counter()
    once = RowSet()
    statuses: Counter[str] = Counter()
    usage: dict[str, dict[str, float]] = {}
    sentences = 0
    wanted = {file.partition_path for file in files.values()}
    paths = [p for place, found in partitions(output, "raw").items() if hive_path(place) in wanted for p in found]
    numbers = pa.array(list(files), pa.int64())
    for batch in batches(output.fs, paths, ["row_key", "status", "usage", "sentences.list.element.start"]):
        mine = batch.filter(pc.is_in(pc.shift_right(batch["row_key"], 32), numbers))
        keys = mine["row_key"].to_numpy()
        once.add(keys)
        rows.update(dict(zip(*(found.tolist() for found in np.unique(keys >> 32, return_counts=True)), strict=True)))
        statuses.update({found["values"]: found["counts"] for found in pc.value_counts(mine["status"]).to_pylist()})
        good = mine.filter(pc.equal(mine["status"], Status.OK.value))
        sentences += pc.sum(pc.list_value_length(good["sentences"])).as_py() or 0
        _add_usage(usage, mine["usage"].flatten())
    _check_rows(rows, once, files)
    return statuses, usage, sentences


def _check_rows(rows: Mapping[int, int], once: RowSet, files: Mapping[int, LogFile]) -> None:
    faults = []
    for number, file in files.items():
        out, different = rows.get(number, 0), once.count(number << 32, (number << 32) + (file.rows or 0))
        if not file.rows == out == different:
            faults.append(f"{file.path}: {file.rows} rows in, {out} out, {different} of them different")
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
