"""Read `escalated/`, and keep one outcome per row in it."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.sidecar_dataset import open_escalations
from ragassay.jobs.storage.folder import Folder, read_table
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.schemas.columns import USAGE, Status

USAGE_FIELDS = [field.name for field in USAGE if field.name != "name"]


@dataclass(frozen=True)
class Outcomes:
    """The rows of `escalated/`, in file order.

    Attributes:
        keys: `row_key` of each row.
        is_error: Whether the status is `error`; such a row is retried.
        partition_numbers: Index of each row's partition in `partitions`.
        partitions: Hive paths in `escalated/`, with decoded values.
    """

    keys: Ints
    is_error: Bools
    partition_numbers: Ints
    partitions: list[str]

    def is_in_partition(self, partition: str) -> Bools:
        """Return whether each row is in a partition."""
        number = self.partitions.index(partition) if partition in self.partitions else -1
        return np.asarray(self.partition_numbers == number)


def read_outcomes(output: Folder) -> Outcomes:
    """Read the keys and statuses of `escalated/`."""
    keys, is_error, numbers = [np.array([], np.int64)], [np.array([], bool)], [np.array([], np.int64)]
    partitions = open_escalations(output).list_partition_files()
    for number, paths in enumerate(partitions.values()):
        for path in paths:
            table = read_table(output.fs, path, ["row_key", "status"])
            keys.append(table["row_key"].to_numpy())
            is_error.append(pc.equal(table["status"], Status.ERROR.value).to_numpy())
            numbers.append(np.full(len(table), number))
    return Outcomes(np.concatenate(keys), np.concatenate(is_error), np.concatenate(numbers), list(map(hive_path, partitions)))


def drop_superseded(output: Folder) -> None:
    """Keep one outcome per row, the successful one if there is one.

    Retried rows have two outcomes until then. If a run is interrupted before, the next run drops them.
    """
    dataset = open_escalations(output)
    outcomes = read_outcomes(output)
    order = np.lexsort((outcomes.is_error, outcomes.keys))
    is_kept = np.zeros(len(order), dtype=bool)
    is_kept[order] = np.diff(outcomes.keys[order], prepend=-1) > 0
    start = 0
    for path in () if is_kept.all() else dataset.list_files():
        rows = pq.read_metadata(path, filesystem=output.fs).num_rows
        dataset.rewrite_rows(path, is_kept[start : start + rows])
        start += rows


def sum_usage(output: Folder, keys: Ints, counted_runs: Collection[str]) -> tuple[Counter[str], dict[str, int | float], int]:
    """Count the statuses of rows, and sum the usage that is not counted yet.

    Args:
        output: The output folder.
        keys: `row_key`s of the rows.
        counted_runs: Ids of the runs whose usage is already counted.

    Returns:
        Rows by status; prompts, tokens, engine and idle seconds of the rows that other runs sent; number of these rows.
    """
    statuses: Counter[str] = Counter()
    usage: dict[str, int | float] = dict.fromkeys(USAGE_FIELDS, 0)
    sent = 0
    for batch in open_escalations(output).read_batches(["row_key", "status", "usage", "run_id"]):
        rows = batch.filter(pa.array(np.isin(batch["row_key"].to_numpy(), keys)))
        statuses.update(rows["status"].to_pylist())
        rows = rows.filter(pc.invert(pc.is_in(rows["run_id"], pa.array(list(counted_runs), pa.string()))))
        sent += rows.num_rows
        for name in USAGE_FIELDS:
            usage[name] += pc.sum(rows["usage"].field(name)).as_py() or 0
    return statuses, usage, sent


def read_tokens(output: Folder) -> tuple[Ints, Ints]:
    """Read the `row_key` of every row, ascending, and its number of judge tokens, including reused ones."""
    keys, tokens = [np.array([], np.int64)], [np.array([], np.int64)]
    for batch in open_escalations(output).read_batches(["row_key", "usage"]):
        usage = batch["usage"]
        counts = (
            pc.fill_null(usage.field(name), 0).to_numpy(zero_copy_only=False) for name in ("tokens_computed", "tokens_reused")
        )
        keys.append(batch["row_key"].to_numpy())
        tokens.append(sum(counts, np.zeros(batch.num_rows, np.int64)))
    order = np.argsort(np.concatenate(keys))
    return np.concatenate(keys)[order], np.concatenate(tokens)[order]
