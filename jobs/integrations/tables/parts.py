"""What is written: partitions of `scored/`, each with the number of the verdicts that it holds."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.integrations.tables import errors
from ragassay.jobs.integrations.tables.types import storable_schema, stored
from ragassay.jobs.output.partitions import hive_keys, hive_path
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored
from ragassay.jobs.output.snapshot import check_partition
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.manifest import Manifest

OUTPUT = "ragassay_output"
"""Column with the name of the output folder that a row is of."""

PARTITION = "ragassay_partition"
"""Column with the hive path of its partition."""

NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Part:
    """A partition of `scored/`.

    Attributes:
        place: Its hive path on disk.
        scored: Its rows.
        version: Which verdicts: grows where they are written anew.
    """

    place: str
    scored: ScoredDataset
    version: int

    @property
    def name(self) -> str:
        """Its hive path, with plain values."""
        return hive_path(self.place)


def parts_of(output: Folder, manifest: Manifest) -> list[Part]:
    """The partitions with verdicts, in order.

    Raises:
        OutputError: There are none.
    """
    numbers = {run.run_id: number for number, run in enumerate(manifest.runs, start=1)}

    def version(name: str) -> int:
        runs = (manifest.finalized[name].run_id, manifest.escalated.get(name, ""))
        return max(numbers.get(run, 1) for run in runs)

    scored = (
        open_scored(output).select_partitions(manifest.finalized).require_verdicts()
    )  # a run is about to write others, or broke off
    return [Part(place, rows, version(hive_path(place))) for place, rows in scored.partitions.items()]


def schema_of(output: Folder, parts: list[Part]) -> pa.Schema:
    """Columns of the table: those of `scored/` in all partitions, with the partitions' keys, and which partition a row is of.

    Raises:
        OutputError: A column has types that nothing holds, or the name of one of those added.
    """
    schemas = {part.scored.schema_of(file): part.name for part in parts for file in part.scored.files}
    try:
        merged = merge_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(errors.NO_COMMON_TYPE, output=output.uri, reason=error) from error
    keys = dict.fromkeys(key for part in parts for key in hive_keys(part.place))
    added = [pa.field(name, pa.string()) for name in (*keys, PARTITION, OUTPUT)]
    clash = [column.name for column in added if column.name in merged.names]
    if clash:
        raise OutputError(errors.COLUMN_IS_KEY, output=output.uri, column=clash[0])
    return storable_schema(pa.schema([*merged, *added]))


def rows_of(output: Folder, part: Part, schema: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Rows of a partition with these columns, batch by batch.

    Args:
        output: The output folder.
        part: The partition.
        schema: As `schema_of` gave it.
        name: What the table calls the output folder.

    Raises:
        OutputRewritten: A run has replaced the partition meanwhile.
    """
    keys = {key: None if value == NULL else value for key, value in hive_keys(part.place).items()}
    values = {**keys, PARTITION: part.name, OUTPUT: name}
    for rows in part.scored.read_batches():
        batch = rows.batch
        added = [pa.array([value] * batch.num_rows, pa.string()) for value in values.values()]
        names = [*batch.schema.names, *values]
        yield stored(pa.RecordBatch.from_arrays([*batch.columns, *added], names=names), schema)
    check_partition(output, part.place)  # before they are committed
