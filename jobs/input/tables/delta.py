"""Delta tables: the files of a version, and those that came in after an earlier one."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.formats import look_at
from ragassay.jobs.input.parquet import open_parquet
from ragassay.jobs.input.tables import errors
from ragassay.jobs.input.tables.places import library, location, storage_options
from ragassay.jobs.input.tables.projected import CHANGE, INSERT, Projected, projected
from ragassay.jobs.input.tables.since import AsOf, Growth, Runs, begin_of
from ragassay.jobs.input.types import plain
from ragassay.jobs.storage.folder import Folder, real_path
from ragassay.pipeline.errors import InputError
from ragassay.schemas.source import SourceTable

LOG = "_delta_log"
NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a null of a partition column is called, here as in hive folders."""

_NO_NEW_ROWS = ("DELETE", "UPDATE")
"""Operations that replace files by others with the same rows, less some or changed: rows that are scored stay as they are."""

_WHOLE_SECOND = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.0+$"
)  # some write a partition's whole seconds with zeros behind

_PHYSICAL = b"delta.columnMapping.physicalName"


@dataclass
class Commit:
    """What a version of a Delta table did.

    Attributes:
        version: Its number.
        operation: As its writer calls it; "unknown" where it does not say.
        rearranged: Whether no row of the table changed by it (OPTIMIZE).
        added: Files that it added: `add` actions.
        removed: Paths of those that it took away.
        changes: Files of its change data feed: `cdc` actions.
    """

    version: int
    operation: str = "unknown"
    rearranged: bool = True
    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)


def find_delta(folder: Folder, source: InputConfig, runs: Runs) -> Logs:
    """The data files of a Delta table: those of a version, or what came in since another.

    Args:
        folder: The table.
        source: The job's `input`: `version` (None is the latest), `since`.
        runs: Of the output folder.

    Raises:
        InputError: The table can't be read as it stands: a feature, a rewrite, files that are gone.
    """
    delta = library("deltalake", f"the Delta table {folder.address}")
    exceptions = library("deltalake.exceptions", f"the Delta table {folder.address}")

    def opened(version: int | None) -> Any:
        try:
            return delta.DeltaTable(location(folder), version=version, storage_options=storage_options(folder) or None)
        except (exceptions.DeltaError, OSError, ValueError) as error:
            at = "" if version is None else f" at version {version}"
            raise InputError(errors.UNREADABLE_DELTA, table=folder.address, at=at, reason=str(error).splitlines()[0]) from error

    table = opened(source.version)
    version = table.version()
    begin = begin_of("delta", folder.address, version, source, runs)
    columns, keys = pa.schema(table.schema().to_arrow()), list(table.metadata().partition_columns)
    grown, changes = Growth(folder.address, "Delta"), Growth(folder.address, "Delta")
    if begin.whole is not None:
        start = opened(begin.whole)
        grown.keep(map(_without_deleted(start), _of_version(folder, start)))
    for commit in _commits(folder, begin.since, version):
        old_rows = commit.rearranged or commit.operation in _NO_NEW_ROWS
        added = [_entry(folder, add, keys) for add in commit.added]
        new_rows = not old_rows and not commit.changes
        taken = grown.step(
            commit.version, commit.operation, added, commit.removed,
            new_rows=new_rows, before=_as_of_version(opened, commit.version - 1),
        )  # fmt: skip
        if not taken and not old_rows:
            changes.keep(_entry(folder, change, keys) for change in commit.changes)
        if commit.version in begin.registered:
            grown.keep(as_of=_without_deleted(opened(commit.version)))
    grown.keep(as_of=_without_deleted(table))
    if vectors := [file for file in grown.files if file.error is not None]:
        _refuse_vectors(folder.address, len(vectors))
    found = look_at(folder.fs, grown.files)
    _refuse_gone(folder, found)
    wanted = pa.schema([column for column in columns if column.name not in keys])
    mine = [projected(file, wanted, _name_in) for file in found]
    mine += [_inserts(folder.fs, file, wanted) for file in look_at(folder.fs, changes.files)]
    since = begin.since if begin.whole is None else None
    readable = [file for file in mine if file.error is None]
    lineage = SourceTable("delta", folder.address, version, since, keys)
    own = {real_path(folder.fs, folder.root): folder.root}  # whatever else lies in it, a vacuum deletes
    return Logs(folder.address, folder.fs, readable, [file for file in mine if file.error is not None], own, source=lineage)


def _of_version(folder: Folder, table: Any) -> Iterator[LogFile]:
    """The live files of a version, by the library: it knows checkpoints."""
    actions = pa.table(table.get_add_actions(flatten=False))
    keys = list(table.metadata().partition_columns)
    for action in actions.to_pylist():
        given = action.get("partition_values") or action.get("partition") or {}
        values = {key: _as_text(given.get(key)) for key in keys}
        yield _file(folder, unquote(action["path"]), action["size_bytes"], values, keys, vector=False)


def _as_of_version(opened: Callable[[int], Any], version: int) -> AsOf:
    """A file as a version has it; only a file with a deletion vector needs that version to be read."""
    return lambda file: file if file.error is None else _without_deleted(opened(version))(file)


def _without_deleted(table: Any) -> AsOf:
    """Files as a version has them: without the rows that its deletion vectors name, which the library decodes."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return lambda file: file
    root = table.table_uri.rstrip("/") + "/"
    deleted: dict[str, bytes] = {}
    for batch in map(pa.record_batch, table.deletion_vectors()):
        for path, kept in zip(batch["filepath"].to_pylist(), batch["selection_vector"], strict=True):
            gone = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False)).astype(np.int64)
            deleted[unquote(path.removeprefix(root))] = gone.tobytes()

    def as_of(file: LogFile) -> LogFile:
        if file.path not in deleted:
            return file
        return replace(file, error=None, view=Projected((), pa.schema([]), deleted=deleted[file.path]))

    return as_of


def _refuse_vectors(table: str, files: int) -> None:
    raise InputError(errors.DELETION_VECTORS, table=table, files=files)


def _as_text(value: Any) -> str | None:
    """A partition value as the log writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text.removesuffix("+00:00") if " " in text else text


def _commits(folder: Folder, since: int, version: int) -> Iterator[Commit]:
    """The versions behind one, up to another, in order.

    Raises:
        InputError: The log does not reach so far back, or `since` lies ahead.
    """
    for number in range(since + 1, version + 1):
        text = folder.read(f"{LOG}/{number:020d}.json")
        if text is None:
            raise InputError(errors.LOG_GONE, table=folder.address, version=number, since=since)
        yield parse_commit(number, text)


def parse_commit(version: int, text: str) -> Commit:
    """What a file of the log says.

    Args:
        version: Its number.
        text: An action a line, as JSON.
    """
    commit = Commit(version)
    for line in filter(None, map(str.strip, text.splitlines())):
        action = json.loads(line)
        if "commitInfo" in action:
            commit.operation = str(action["commitInfo"].get("operation", commit.operation))
        elif "add" in action:
            commit.added.append(action["add"])
            commit.rearranged &= not action["add"].get("dataChange", True)
        elif "remove" in action:
            commit.removed.append(unquote(action["remove"]["path"]))
            commit.rearranged &= not action["remove"].get("dataChange", True)
        elif "cdc" in action:
            commit.changes.append(action["cdc"])
    return commit


def _entry(folder: Folder, action: Mapping[str, Any], keys: Sequence[str]) -> LogFile:
    values = {key: action.get("partitionValues", {}).get(key) for key in keys}
    vector = bool(action.get("deletionVector"))
    return _file(folder, unquote(action["path"]), int(action["size"]), values, keys, vector=vector)


def _file(
    folder: Folder, path: str, size: int, values: Mapping[str, str | None], keys: Sequence[str], *, vector: bool
) -> LogFile:
    if "://" in path or path.startswith("/"):
        raise InputError(errors.FILE_ELSEWHERE, table=folder.address, path=path)
    # An empty string and null are the same to a partition column.
    partition = tuple((key, _WHOLE_SECOND.sub(r"\1", values[key] or NULL)) for key in keys)
    error = "it has a deletion vector" if vector else None
    return LogFile(path, folder.format_address(path), folder.path(path), size, partition, error=error)


def _refuse_gone(folder: Folder, files: Sequence[LogFile]) -> None:
    """Files that the log names and nobody can read: the table was vacuumed."""
    infos = folder.fs.get_file_info([file.fs_path for file in files if file.error is not None])
    gone = [info.path for info in infos if info.type == pafs.FileType.NotFound]
    if gone:
        raise InputError(errors.VACUUMED, table=folder.address, files=len(gone), example=gone[0])


def _name_in(column: pa.Field, file: pa.Schema) -> str | None:
    """A column's name in a file: its physical one, where columns are mapped."""
    name: str = (column.metadata or {}).get(_PHYSICAL, column.name.encode()).decode()
    if name not in file.names:
        return None
    if _nested_names(column.type) - _nested_names(file.field(name).type) and _mapped(column):
        raise InputError(errors.COLUMN_MAPPING, column=column.name)
    return name


def _mapped(column: pa.Field) -> bool:
    return _PHYSICAL in (column.metadata or {})


def _nested_names(kind: pa.DataType) -> set[str]:
    """Names of the fields of structs within a type."""
    inside = [kind.field(i) for i in range(kind.num_fields)]
    names = {part.name for part in inside} if pa.types.is_struct(kind) else set()
    return names.union(*(_nested_names(part.type) for part in inside))


def _inserts(fs: pafs.FileSystem, file: LogFile, wanted: pa.Schema) -> LogFile:
    """A file of a change data feed: the rows that were inserted."""
    if file.schema is None:
        return file
    with open_parquet(fs, file.fs_path) as parquet:
        counts = tuple(
            sum(
                int(pc.sum(pc.equal(plain(batch[CHANGE]), INSERT)).as_py() or 0)
                for batch in parquet.batches(group, 1 << 16, [CHANGE])
            )
            for group in range(len(parquet.sizes))
        )
    found = projected(file, wanted, _name_in)
    view = found.view
    assert isinstance(view, Projected)  # it has a column more than the table
    return replace(found, rows=sum(counts), view=replace(view, inserts=counts))
