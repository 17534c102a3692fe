"""Partitions of `scored/` to write to a table, each with the version of its verdicts."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.integrations.tables import errors
from ragassay.jobs.integrations.tables.types import storable_schema, to_storable
from ragassay.jobs.output.partitions import hive_keys, hive_path
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored
from ragassay.jobs.output.snapshot import check_partition
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import NULL_PARTITION
from ragassay.schemas.manifest import Manifest

OUTPUT_COLUMN = "ragassay_output"
"""Column with the name of the output folder."""

PARTITION_COLUMN = "ragassay_partition"
"""Column with the hive path of the partition."""


@dataclass(frozen=True)
class TablePartition:
    """A partition of `scored/`.

    Attributes:
        path: Hive path on disk.
        scored: Its rows.
        version: Version of its verdicts; it grows when they are written again.
    """

    path: str
    scored: ScoredDataset
    version: int

    @property
    def name(self) -> str:
        """Hive path with decoded values."""
        return hive_path(self.path)


def find_partitions(output: Folder, manifest: Manifest) -> list[TablePartition]:
    """Find the partitions with verdicts, in order.

    Raises:
        OutputError: There are none.
    """
    run_numbers = {run.run_id: number for number, run in enumerate(manifest.runs, start=1)}

    def version(name: str) -> int:
        runs = (manifest.finalized[name].run_id, manifest.escalated.get(name, ""))
        return max(run_numbers.get(run, 1) for run in runs)

    scored = open_scored(output).select_partitions(manifest.finalized).require_verdicts()  # others are in progress
    return [TablePartition(path, rows, version(hive_path(path))) for path, rows in scored.partitions.items()]


def merge_table_schema(output: Folder, partitions: list[TablePartition]) -> pa.Schema:
    """Return the columns of the table: those of `scored/` in all partitions, the partition keys, partition and output.

    Raises:
        OutputError: A column has types that no common type can store, or the name of an added column.
    """
    schemas = {partition.scored.schema_of(file): partition.name for partition in partitions for file in partition.scored.files}
    try:
        merged = merge_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(errors.NO_COMMON_TYPE, output=output.uri, reason=error) from error
    keys = dict.fromkeys(key for partition in partitions for key in hive_keys(partition.path))
    added = [pa.field(name, pa.string()) for name in (*keys, PARTITION_COLUMN, OUTPUT_COLUMN)]
    conflicts = [column.name for column in added if column.name in merged.names]
    if conflicts:
        raise OutputError(errors.COLUMN_IS_KEY, output=output.uri, column=conflicts[0])
    return storable_schema(pa.schema([*merged, *added]))


def read_rows(output: Folder, partition: TablePartition, schema: pa.Schema, output_name: str) -> Iterator[pa.RecordBatch]:
    """Read the rows of a partition with the columns of the table, batch by batch.

    Args:
        output: The output folder.
        partition: The partition.
        schema: Result of `merge_table_schema`.
        output_name: Name of the output folder in the table.

    Raises:
        OutputRewritten: A run has replaced the partition in the meantime.
    """
    keys = {key: None if value == NULL_PARTITION else value for key, value in hive_keys(partition.path).items()}
    values = {**keys, PARTITION_COLUMN: partition.name, OUTPUT_COLUMN: output_name}
    for rows in partition.scored.read_batches():
        batch = rows.batch
        added = [pa.array([value] * batch.num_rows, pa.string()) for value in values.values()]
        names = [*batch.schema.names, *values]
        yield to_storable(pa.RecordBatch.from_arrays([*batch.columns, *added], names=names), schema)
    check_partition(output, partition.path)  # before the rows are committed
