"""Verdicts into a Delta table: a partition is one commit, which says so itself and is never made twice."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.tables.access import import_library, library_uri, storage_options
from ragassay.jobs.integrations.tables import errors
from ragassay.jobs.integrations.tables.parts import OUTPUT, PARTITION
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError


class DeltaTarget:
    """A Delta table, which is made by the first partition."""

    def __init__(self, folder: Folder) -> None:
        """Open it, where it is there.

        Raises:
            OutputError: It can't be opened.
        """
        self.uri = folder.address
        self._folder = folder
        self._delta = import_library("deltalake", f"the Delta table {folder.address}")
        self._errors = import_library("deltalake.exceptions", f"the Delta table {folder.address}")
        self._options = storage_options(folder) or None

    def _table(self) -> Any:
        try:
            return self._delta.DeltaTable(library_uri(self._folder), storage_options=self._options)
        except self._errors.TableNotFoundError:
            return None
        except (self._errors.DeltaError, OSError) as error:
            raise OutputError(errors.DELTA_NOT_OPENABLE, table=self.uri, reason=str(error).splitlines()[0]) from error

    def prepare(self, schema: pa.Schema, keys: list[str]) -> None:
        """Take note of columns and partition columns: the first commit makes the table with them."""
        self._schema, self._keys = schema, keys

    def version_of(self, app: str) -> int | None:
        """Which verdicts of a partition it holds; None for none."""
        table = self._table()
        found: int | None = None if table is None else table.transaction_version(app)
        return found

    def replace(self, app: str, version: int, partition: str, name: str, rows: Iterable[pa.RecordBatch]) -> None:
        """Put a partition's rows in the place of those that it had: one commit, which holds the version too.

        Args:
            app: Names the partition in the table's log.
            version: Of its verdicts.
            partition: Its hive path.
            name: What the table calls the output folder.
            rows: Its rows.

        Raises:
            OutputError: It can't be written.
        """
        properties = self._delta.CommitProperties(app_transactions=[self._delta.Transaction(app, version)])
        there = self._table() is not None
        how: dict[str, Any] = {"mode": "append", "partition_by": self._keys or None}
        if there:
            wanted = f"{OUTPUT} = {_quoted(name)} AND {PARTITION} = {_quoted(partition)}"
            how = {"mode": "overwrite", "predicate": wanted, "schema_mode": "merge"}
        try:
            self._delta.write_deltalake(
                library_uri(self._folder),
                pa.RecordBatchReader.from_batches(self._schema, rows),
                commit_properties=properties,
                storage_options=self._options,
                **how,
            )
        except (self._errors.DeltaError, pa.ArrowException, OSError, ValueError) as error:
            raise OutputError(errors.DELTA_NOT_WRITABLE, table=self.uri, reason=str(error).splitlines()[0]) from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
