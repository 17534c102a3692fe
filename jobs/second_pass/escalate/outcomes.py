"""What `escalated/` holds: an outcome a row, and after a second try at a row its later one."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.sidecar import open_escalations
from ragassay.jobs.storage.folder import Folder, read_table
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.schemas.columns import USAGE, Status

USAGE_FIELDS = [field.name for field in USAGE if field.name != "name"]


@dataclass(frozen=True)
class Outcomes:
    """The rows of `escalated/`, in the order of its files.

    Attributes:
        keys: `row_key` of each.
        failed: Whether it is the status `error`, which may pass: the row is asked about again.
        places: Number of its partition in `partitions`.
        partitions: Hive paths in `escalated/`, with plain values.
    """

    keys: Ints
    is_error: Bools
    partition_numbers: Ints
    partitions: list[str]

    def is_in_partition(self, partition: str) -> Bools:
        """Whether each stands in a partition."""
        number = self.partitions.index(partition) if partition in self.partitions else -1
        return np.asarray(self.partition_numbers == number)


def read_outcomes(output: Folder) -> Outcomes:
    """Read the keys of what stands there."""
    keys, failed, places = [np.array([], np.int64)], [np.array([], bool)], [np.array([], np.int64)]
    found = open_escalations(output).list_partition_files()
    for number, paths in enumerate(found.values()):
        for path in paths:
            table = read_table(output.fs, path, ["row_key", "status"])
            keys.append(table["row_key"].to_numpy())
            failed.append(pc.equal(table["status"], Status.ERROR.value).to_numpy())
            places.append(np.full(len(table), number))
    return Outcomes(np.concatenate(keys), np.concatenate(failed), np.concatenate(places), list(map(hive_path, found)))


def drop_superseded(output: Folder) -> None:
    """Leave one outcome a row: errors go where another outcome stands, so that a row never is without one.

    A run that is killed before it comes to this leaves it to the next.
    """
    dataset = open_escalations(output)
    found = read_outcomes(output)
    order = np.lexsort((found.is_error, found.keys))  # of a row's outcomes the first is to stay
    stays = np.zeros(len(order), dtype=bool)
    stays[order] = np.diff(found.keys[order], prepend=-1) > 0
    begin = 0
    for path in () if stays.all() else dataset.list_files():
        rows = pq.read_metadata(path, filesystem=output.fs).num_rows
        dataset.rewrite_rows(path, stays[begin : begin + rows])
        begin += rows


def sum_usage(output: Folder, keys: Ints, counted: Collection[str]) -> tuple[Counter[str], dict[str, int | float], int]:
    """What rows came to.

    Args:
        output: The output folder.
        keys: Their `row_key`s.
        counted: Runs whose usage has been counted.

    Returns:
        The rows by status; prompts, tokens, engine and idle seconds of those that other runs asked about; how many these are.
    """
    statuses: Counter[str] = Counter()
    used: dict[str, int | float] = dict.fromkeys(USAGE_FIELDS, 0)
    asked = 0
    for batch in open_escalations(output).read_batches(["row_key", "status", "usage", "run_id"]):
        mine = batch.filter(pa.array(np.isin(batch["row_key"].to_numpy(), keys)))
        statuses.update(mine["status"].to_pylist())
        mine = mine.filter(pc.invert(pc.is_in(mine["run_id"], pa.array(list(counted), pa.string()))))
        asked += mine.num_rows
        for name in USAGE_FIELDS:
            used[name] += pc.sum(mine["usage"].field(name)).as_py() or 0
    return statuses, used, asked


def read_tokens(output: Folder) -> tuple[Ints, Ints]:
    """`row_key` of every row that stands there, ascending, and the tokens that it took of the judge, reused ones among them."""
    keys, tokens = [np.array([], np.int64)], [np.array([], np.int64)]
    for batch in open_escalations(output).read_batches(["row_key", "usage"]):
        usage = batch["usage"]
        both = (
            pc.fill_null(usage.field(name), 0).to_numpy(zero_copy_only=False) for name in ("tokens_computed", "tokens_reused")
        )
        keys.append(batch["row_key"].to_numpy())
        tokens.append(sum(both, np.zeros(batch.num_rows, np.int64)))
    order = np.argsort(np.concatenate(keys))
    return np.concatenate(keys)[order], np.concatenate(tokens)[order]
