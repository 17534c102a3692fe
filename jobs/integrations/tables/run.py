"""Write the verdicts of an output folder into a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ragassay.jobs.integrations.tables import errors
from ragassay.jobs.integrations.tables.delta import DeltaTarget
from ragassay.jobs.integrations.tables.iceberg import IcebergTarget
from ragassay.jobs.integrations.tables.parts import parts_of, rows_of, schema_of
from ragassay.jobs.output.partitions import hive_keys
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.storage.folder import Folder, check_outside_output, open_folder
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.manifest import Manifest

LOCK = "_lock-table"
"""Held while a table is written: runs need not wait for it."""


class Target(Protocol):
    """A table that partitions are written into, each whole or not at all."""

    uri: str

    def prepare(self, schema: pa.Schema, keys: list[str]) -> None:
        """Make it ready for rows with these columns, of partitions with these keys."""

    def version_of(self, app: str) -> int | None:
        """Which verdicts of a partition it holds; None for none."""

    def replace(self, app: str, version: int, partition: str, name: str, rows: Iterable[pa.RecordBatch]) -> None:
        """Put a partition's rows in the place of those that it had."""


@dataclass
class WrittenTable:
    """What was written.

    Attributes:
        partitions: Partitions that were written.
        rows: Their rows.
        same: Partitions whose verdicts the table held already.
    """

    partitions: int = 0
    rows: int = 0
    same: int = 0


def target_of(to: str, output: Folder, catalog: dict[str, str]) -> Target:
    """The table that `--table` names.

    Args:
        to: delta:PATH or URI, or iceberg:CATALOG/NAMESPACE.TABLE.
        output: The output folder, which must not hold it.
        catalog: Properties of the Iceberg catalog, beside pyiceberg's configuration.

    Raises:
        RagassayError: It names none, or it can't be opened.
    """
    kind, _, place = to.partition(":")
    if kind == "delta" and place:
        folder = open_folder(place)
        check_outside_output(output, folder, place)
        return DeltaTarget(folder)
    if kind == "iceberg" and place:
        return IcebergTarget(place.removeprefix("//"), catalog)
    raise ConfigError(errors.UNKNOWN_KIND, to=to)


def write_table(output: Folder, manifest: Manifest, target: Target, name: str | None) -> WrittenTable:
    """Write each partition whose verdicts the table does not hold yet, in place of those it holds.

    Args:
        output: The output folder; nobody else writes it into a table meanwhile (LOCK).
        manifest: Its manifest.
        target: The table.
        name: What the table calls the output folder; None is its address. Rows of other names are left alone.

    Raises:
        RagassayError: Something can't be read or written; what is written stays, and the same command goes on.
    """
    name = name or output.address
    parts = parts_of(output, manifest)
    schema = schema_of(output, parts)
    target.prepare(schema, list(dict.fromkeys(key for part in parts for key in hive_keys(part.place))))
    done = WrittenTable()
    expect(len(parts), "partitions")
    for part in parts:
        # An output folder that was begun anew under the same name is another one: its first run tells.
        app = f"ragassay/{manifest.runs[0].run_id}/{name}/{part.name}"
        held = target.version_of(app)
        if held is not None and held >= part.version:
            done.same += 1
        else:
            rows = _Counted(rows_of(output, part, schema, name))
            target.replace(app, part.version, part.name, name, rows)
            done.partitions += 1
            done.rows += rows.count
        advance(1, "partitions")
    return done


class _Counted:
    """Counts rows as they go by."""

    def __init__(self, rows: Iterable[pa.RecordBatch]) -> None:
        self._rows, self.count = iter(rows), 0

    def __iter__(self) -> "_Counted":
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._rows)
        self.count += batch.num_rows
        return batch
