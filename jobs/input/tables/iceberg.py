"""Iceberg tables: the data files of a snapshot, and those that came in after an earlier one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.formats import look_at
from ragassay.jobs.input.tables import errors
from ragassay.jobs.input.tables.delta import NULL
from ragassay.jobs.input.tables.places import iceberg_properties, library
from ragassay.jobs.input.tables.projected import projected
from ragassay.jobs.input.tables.since import AsOf, Growth, Runs, begin_of
from ragassay.pipeline.errors import InputError
from ragassay.schemas.source import SourceTable

SCHEME = "iceberg://"
_ID = b"PARQUET:field_id"
_NO_NEW_ROWS = ("replace", "delete")
"""Operations after which a table has no row that it did not have before."""

_ARROW_IO = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}


def catalog_table(name: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """A catalog, and the identifier of a table in it.

    Args:
        name: CATALOG/NAMESPACE.TABLE.
        properties: Of the catalog, beside pyiceberg's own configuration (`.pyiceberg.yaml`, PYICEBERG_CATALOG__…).

    Raises:
        InputError: The name is none of a table, or there is no such catalog.
    """
    catalog, _, identifier = name.partition("/")
    if "." not in identifier:
        raise InputError(errors.NO_ICEBERG_NAME, name=name)
    loading = library("pyiceberg.catalog", f"the Iceberg table {name}")
    try:
        return loading.load_catalog(catalog or None, **{**_ARROW_IO, **properties}), identifier
    except Exception as error:  # whatever its database or server says
        raise InputError(errors.NO_CATALOG, catalog=catalog, reason=_said(error)) from error


@dataclass(frozen=True)
class Scan:
    """A data file that the library reads: rows are deleted from it, or its columns have other names inside.

    Attributes:
        metadata: Location of the table's metadata.
        properties: Of its file access.
        snapshot: Id of the snapshot whose deletes count.
        path: The data file, as the table names it.
        rows: Rows that are left; None until they are counted.
    """

    metadata: str
    properties: Mapping[str, str]
    snapshot: int
    path: str
    rows: int | None = None

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_Reader"]:
        """Open it."""
        yield _Reader(self)


class _Reader:
    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.sizes = [scan.rows or 0]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        static = library("pyiceberg.table", "an Iceberg table").StaticTable
        table = static.from_metadata(self._scan.metadata, dict(self._scan.properties))
        scan = table.scan(snapshot_id=self._scan.snapshot)
        (task,) = [task for task in scan.plan_files() if task.file.file_path == self._scan.path]
        schema = table.schema()
        wanted = schema if columns is None else schema.select(*(c for c in columns if c in schema.column_names))
        reading = library("pyiceberg.io.pyarrow", "an Iceberg table")
        everything = library("pyiceberg.expressions", "an Iceberg table").AlwaysTrue()
        for batch in reading.ArrowScan(table.metadata, table.io, wanted, everything).to_record_batches([task]):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)


def find_iceberg(uri: str, source: InputConfig, runs: Runs) -> Logs:
    """The data files of an Iceberg table: those of a snapshot, or what came in since another.

    Args:
        uri: iceberg://CATALOG/NAMESPACE.TABLE, or a metadata file.
        source: The job's `input`: `version` (a snapshot id; None is the current one), `since`, `catalog`.
        runs: Of the output folder.

    Raises:
        InputError: The table can't be read as it stands: deletes by equality, a rewrite, a snapshot that is gone.
    """
    table = _table(uri, source.catalog)
    name = strip_credentials(uri if uri.startswith(SCHEME) else str(table.location())).rstrip("/")
    snapshot = _snapshot(table, name, source.version)
    if snapshot is None:
        return Logs(strip_credentials(uri), pafs.LocalFileSystem(), [], source=SourceTable("iceberg", name, None))
    begin = begin_of("iceberg", name, snapshot.snapshot_id, source, runs)
    tasks = _Tasks(table, name)
    grown = Growth(name, "Iceberg")
    if begin.whole is not None:
        start = _snapshot(table, name, begin.whole)
        grown.keep(tasks.as_of(begin.whole).values() if start is not None else ())
    for step in _steps(table, name, begin.since, snapshot):
        added, removed = tasks.of_snapshot(step)
        operation = step.summary.operation.value if step.summary is not None else "unknown"
        new_rows = operation not in _NO_NEW_ROWS
        before = tasks.at(step.parent_snapshot_id)
        grown.step(step.snapshot_id, operation, added, removed, new_rows=new_rows, before=before)
        if step.snapshot_id in begin.registered:
            grown.keep(as_of=tasks.at(step.snapshot_id))
    grown.keep(as_of=tasks.at(snapshot.snapshot_id))
    fs = tasks.file_system()
    files, keys = tasks.partitioned([tasks.looked_at(fs, file) for file in look_at(fs, grown.files)])
    lineage = SourceTable("iceberg", name, snapshot.snapshot_id, begin.since if begin.whole is None else None, keys)
    readable = [file for file in files if file.error is None and file.rows]
    return Logs(strip_credentials(uri), fs, readable, [file for file in files if file.error is not None], source=lineage)


def _table(uri: str, properties: Mapping[str, str]) -> Any:
    if uri.startswith(SCHEME):
        catalog, identifier = catalog_table(uri.removeprefix(SCHEME), properties)
    try:
        if uri.startswith(SCHEME):
            return catalog.load_table(identifier)
        static = library("pyiceberg.table", f"the Iceberg table {uri}").StaticTable
        address, _, query = uri.partition("?")
        return static.from_metadata(address, {**_ARROW_IO, **iceberg_properties(query), **properties})
    except InputError:
        raise
    except Exception as error:  # whatever its catalog, or a file of it, says
        raise InputError(errors.UNREADABLE_ICEBERG, table=uri, reason=_said(error)) from error


def _snapshot(table: Any, name: str, wanted: int | None) -> Any:
    found = table.current_snapshot() if wanted is None else table.snapshot_by_id(wanted)
    if found is None and wanted is not None:
        known = ", ".join(str(one.snapshot_id) for one in table.snapshots()[-3:])
        raise InputError(errors.NO_SNAPSHOT, table=name, snapshot=wanted, known=known or "none")
    return found


def _steps(table: Any, name: str, since: int, last: Any) -> list[Any]:
    """The snapshots behind one, up to another, in order."""
    steps = []
    at = last
    while at is not None and at.snapshot_id != since:
        steps.append(at)
        if at.parent_snapshot_id == since:
            return steps[::-1]
        at = table.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
    if at is None and steps:
        raise InputError(errors.SNAPSHOT_GONE, table=name, since=since, last=last.snapshot_id)
    return steps[::-1]


class _Tasks:
    """Data files of a table as files of logs."""

    def __init__(self, table: Any, name: str) -> None:
        self._table, self._name = table, name
        self._columns = pa.schema(library("pyiceberg.io.pyarrow", name).schema_to_pyarrow(table.schema()))
        self._places: set[tuple[str, str]] = set()
        self.as_of = cache(self._as_of)

    def _as_of(self, snapshot: int) -> dict[str, LogFile]:
        """The files of a snapshot, by path, with what is deleted from them."""
        try:
            tasks = list(self._table.scan(snapshot_id=snapshot).plan_files())
        except (ValueError, NotImplementedError) as error:
            if "equality" in str(error):
                raise InputError(errors.EQUALITY_DELETES, table=self._name, snapshot=snapshot) from error
            raise
        files = (self._file(task.file, snapshot if task.delete_files else None) for task in tasks)
        return {file.path: file for file in files}

    def at(self, snapshot: int | None) -> AsOf:
        """A file as a snapshot has it, or as it is where it has not."""
        return lambda file: file if snapshot is None else self.as_of(snapshot).get(file.path, file)

    def of_snapshot(self, snapshot: Any) -> tuple[list[LogFile], list[str]]:
        """Files that a snapshot added, and the paths of those that it took away."""
        manifest = library("pyiceberg.manifest", self._name)
        added, removed = [], []
        for part in snapshot.manifests(self._table.io):
            if part.added_snapshot_id != snapshot.snapshot_id or part.content != manifest.ManifestContent.DATA:
                continue
            for entry in part.fetch_manifest_entry(self._table.io, discard_deleted=False):
                if entry.snapshot_id != snapshot.snapshot_id:
                    continue
                if entry.status == manifest.ManifestEntryStatus.ADDED:
                    added.append(self._file(entry.data_file, None))
                elif entry.status == manifest.ManifestEntryStatus.DELETED:
                    removed.append(self._file(entry.data_file, None).path)
        return added, removed

    def _file(self, data: Any, deletes_of: int | None) -> LogFile:
        kind = str(getattr(data.file_format, "value", data.file_format))
        if kind.upper() != "PARQUET":
            raise InputError(errors.NO_PARQUET, table=self._name, format=kind, path=data.file_path)
        scheme, place, path = self._table.io.parse_location(data.file_path)
        self._places.add((scheme, place))
        location = str(self._table.location()).rstrip("/") + "/"
        view = Scan(self._table.metadata_location, self._properties(), deletes_of, data.file_path) if deletes_of else None
        own = data.file_path.removeprefix(location)
        return LogFile(own, data.file_path, path, data.file_size_in_bytes, self._partition(data), view=view)

    def _properties(self) -> dict[str, str]:
        return {key: str(value) for key, value in self._table.io.properties.items()}

    def _partition(self, data: Any) -> tuple[tuple[str, str], ...]:
        spec, schema = self._table.specs()[data.spec_id], self._table.schema()
        values = []
        for place, field in enumerate(spec.fields):
            value = data.partition[place]
            kind = schema.find_type(field.source_id) if value is not None else None
            values.append((field.name, NULL if value is None else field.transform.to_human_string(kind, value)))
        return tuple(values)

    def partitioned(self, files: Sequence[LogFile]) -> tuple[list[LogFile], list[str]]:
        """Files with the partition fields that all of them have, whatever partitioning they were written under; and these."""
        fields = [field.name for field in self._table.spec().fields]
        keys = [name for name in fields if all(name in dict(file.partition) for file in files)]
        return [replace(file, partition=tuple((key, dict(file.partition)[key]) for key in keys)) for file in files], keys

    def file_system(self) -> pafs.FileSystem:
        """The file system that all files lie on."""
        if len(self._places) > 1:
            raise InputError(errors.SEVERAL_PLACES, table=self._name, places=sorted(self._places))
        if not self._places or next(iter(self._places))[0] == "file":
            return pafs.LocalFileSystem()
        return self._table.io.fs_by_scheme(*next(iter(self._places)))

    def looked_at(self, fs: pafs.FileSystem, file: LogFile) -> LogFile:
        """A file whose footer was read, with the table's columns; what is deleted from it is left out."""
        if file.schema is None:
            return file
        if file.view is None and self._plainly(file.schema):
            return projected(file, self._columns, _name_in)
        scan = file.view if isinstance(file.view, Scan) else self._scan_of(file)
        first = [self._columns.names[0]]
        rows = sum(batch.num_rows for batch in _Reader(scan).batches(0, 1 << 16, first))
        schema = pa.schema([field.remove_metadata() for field in self._columns])
        return replace(file, rows=rows, schema=schema, row_groups=1, view=replace(scan, rows=rows))

    def _scan_of(self, file: LogFile) -> Scan:
        for snapshot in reversed(self._table.snapshots()):
            if file.path in self.as_of(snapshot.snapshot_id):
                return Scan(self._table.metadata_location, self._properties(), snapshot.snapshot_id, file.uri)
        raise InputError(errors.FILE_GONE, table=self._name, file=file.uri)

    def _plainly(self, file: pa.Schema) -> bool:
        """Whether a file's columns can be told apart by their ids alone: it has them, and the same names within structs."""
        ids = {_id(field): field.type for field in file}
        if None in ids:
            return False
        return all(_names(ids[_id(f)]) == _names(f.type) for f in self._columns if _id(f) in ids)


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(_ID)
    return found


def _name_in(column: pa.Field, file: pa.Schema) -> str | None:
    return next((field.name for field in file if _id(field) == _id(column)), None)


def _names(kind: pa.DataType) -> list[str]:
    """Names of the fields of structs within a type."""
    inside = [kind.field(i) for i in range(kind.num_fields)]
    names = [part.name for part in inside] if pa.types.is_struct(kind) else []
    return names + [name for part in inside for name in _names(part.type)]


def _said(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
