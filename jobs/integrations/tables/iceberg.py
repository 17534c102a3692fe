"""Verdicts into an Iceberg table: a partition is one transaction, and a property of the table says which verdicts it holds."""

import warnings
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.tables.access import import_library
from ragassay.jobs.input.tables.iceberg import open_catalog
from ragassay.jobs.integrations.tables import errors
from ragassay.jobs.integrations.tables.parts import OUTPUT, PARTITION
from ragassay.pipeline.errors import OutputError

WRITTEN_ROWS = 65_536
"""Rows of a data file: they stand in memory together."""


class IcebergTarget:
    """An Iceberg table, which is made if it is not there."""

    def __init__(self, name: str, catalog: dict[str, str]) -> None:
        """Open its catalog.

        Args:
            name: CATALOG/NAMESPACE.TABLE.
            catalog: Properties of the catalog, beside pyiceberg's configuration.
        """
        self.uri = f"iceberg:{name}"
        self._catalog, self._identifier = open_catalog(name, catalog)
        kinds = vars(import_library("pyiceberg.exceptions", self.uri)).values()
        theirs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
        self._failures: tuple[type[Exception], ...] = (*theirs, pa.ArrowException, OSError, ValueError)
        self._table: Any = None

    def prepare(self, schema: pa.Schema, keys: list[str]) -> None:
        """Make the table, or add the columns that it lacks.

        Raises:
            OutputError: Columns have other types there, or it can't be made.
        """
        self._schema = schema
        try:
            if self._catalog.table_exists(self._identifier):
                self._table = self._catalog.load_table(self._identifier)
                with self._table.update_schema() as update:
                    update.union_by_name(schema)
                return
            self._catalog.create_namespace_if_not_exists(self._identifier.rpartition(".")[0])
            self._table = self._catalog.create_table(self._identifier, schema=schema)
            if keys:
                with self._table.update_spec() as spec:
                    for key in keys:
                        spec.add_identity(key)
        except self._failures as error:
            raise OutputError(errors.ICEBERG_NOT_READY, table=self.uri, reason=_first_line(error)) from error

    def version_of(self, app: str) -> int | None:
        """Which verdicts of a partition it holds; None for none."""
        found = self._table.properties.get(_property(app))
        return None if found is None else int(found)

    def replace(self, app: str, version: int, partition: str, name: str, rows: Iterable[pa.RecordBatch]) -> None:
        """Put a partition's rows in the place of those that it had, and its version into the table: one transaction.

        A row's id is in one partition of an output folder, so this updates rows by id, and inserts what is new.

        Args:
            app: Names the partition.
            version: Of its verdicts.
            partition: Its hive path.
            name: What the table calls the output folder.
            rows: Its rows.

        Raises:
            OutputError: It can't be written.
        """
        expressions = import_library("pyiceberg.expressions", self.uri)
        wanted = expressions.And(expressions.EqualTo(OUTPUT, name), expressions.EqualTo(PARTITION, partition))
        try:
            transaction = self._table.transaction()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns where there is nothing to delete
                if self._table.current_snapshot() is not None:
                    transaction.delete(wanted)
            for table in _tables(rows):
                transaction.append(table)
            transaction.set_properties({_property(app): str(version)})
            transaction.commit_transaction()
        except self._failures as error:
            raise OutputError(errors.ICEBERG_NOT_WRITABLE, table=self.uri, reason=_first_line(error)) from error
        self._table = self._catalog.load_table(self._identifier)


def _property(app: str) -> str:
    return f"ragassay.verdicts.{blake2b(app.encode(), digest_size=12).hexdigest()}"


def _tables(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    ready: list[pa.RecordBatch] = []
    for batch in rows:
        ready.append(batch)
        if sum(part.num_rows for part in ready) >= WRITTEN_ROWS:
            yield pa.Table.from_batches(ready)
            ready = []
    if ready:
        yield pa.Table.from_batches(ready)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
