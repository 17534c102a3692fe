"""The input: find Parquet logs, check their columns all at once, and read them as rows of the `logs` schema."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from jobs.config import Columns
from jobs.storage import open_folder
from pipeline.errors import InputError
from schemas.columns import LOGS, OUR_NAMES, Status, logs_schema, passthrough_name

_WILDCARD = re.compile(r"[*?\[]")
_HIVE = re.compile(r"^([^=/]+)=([^/]*)$")
READ_ROWS = 256  # rows decoded at a time, so that a row group of a million rows never stands in memory whole


@dataclass(frozen=True)
class LogFile:
    """A Parquet file of logs.

    Attributes:
        path: Path below the input's root, hive folders kept: the stable part of its rows' ids.
        uri: Where it lies.
        fs_path: Its path on the file system.
        size: Bytes.
        partition: Its hive folders, as (key, value).
        rows: Rows by its footer; None where it can't be read.
        schema: Its Arrow schema; None where it can't be read.
        row_groups: Row groups it has.
        error: Why it can't be read.
    """

    path: str
    uri: str
    fs_path: str
    size: int
    partition: tuple[tuple[str, str], ...]
    rows: int | None = None
    schema: pa.Schema | None = None
    row_groups: int = 0
    error: str | None = None

    @property
    def partition_path(self) -> str:
        """Hive path of its folder, such as `dt=2026-11-20`; empty where there is none."""
        return "/".join(f"{key}={value}" for key, value in self.partition)


@dataclass
class Logs:
    """All files of an input.

    Attributes:
        uri: What the user asked for.
        fs: File system they lie on.
        files: Readable files, sorted by path.
        unreadable: The others.
        passthrough: Schema of the columns that are carried along, partition keys included, under the names they get.
        partition_keys: Names of the hive keys, in order.
    """

    uri: str
    fs: pafs.FileSystem
    files: list[LogFile]
    unreadable: list[LogFile] = field(default_factory=list)
    passthrough: pa.Schema = field(default_factory=lambda: pa.schema([]))
    partition_keys: list[str] = field(default_factory=list)


def find_logs(uri: str) -> Logs:
    """Find the Parquet files of an input and read their footers.

    Args:
        uri: A file, a folder (searched below), a glob, on a disk or an object store.

    Returns:
        The files, readable or not; columns are not checked yet.

    Raises:
        InputError: There is nothing, or no Parquet file, at that place.
    """
    path, mark, options = uri.partition("?") if "://" in uri else (uri, "", "")
    is_glob = bool(_WILDCARD.search(path))
    start = _WILDCARD.split(path, maxsplit=1)[0].rpartition("/")[0] or "." if is_glob else path
    folder = open_folder(start + mark + options)
    base = folder.root
    if is_glob:
        pattern = _glob_pattern(path.partition("://")[2] if "://" in path else str(Path(path).expanduser().absolute()))
        found = [info for info in folder.list("", ".parquet") if pattern.fullmatch(info.path)]
    else:
        info = folder.fs.get_file_info(folder.root)
        if info.type == pafs.FileType.File:
            base = folder.root.rpartition("/")[0]
            found = [info]
        elif info.type == pafs.FileType.Directory:
            found = folder.list("", ".parquet")
        else:
            raise InputError(f"input {uri!r} does not exist")
    if not found:
        raise InputError(f"input {uri!r} holds no .parquet file")
    files = [_footer(folder.fs, info, base, uri) for info in found]
    readable = [f for f in files if f.error is None]
    return Logs(uri, folder.fs, readable, [f for f in files if f.error is not None])


def check_logs(logs: Logs, columns: Columns, question_needed: bool) -> None:
    """Check partitions and columns of all files, and settle the columns that are carried along.

    Args:
        logs: What `find_logs` gave; `passthrough` and `partition_keys` are filled in.
        columns: Our columns' names in the logs.
        question_needed: Whether any SLM's prompt uses the question.

    Raises:
        InputError: Every missing column and wrong type is named at once, with what was found.
    """
    faults: list[str] = []
    keys = {tuple(key for key, _ in f.partition) for f in logs.files}
    if len(keys) > 1:
        faults.append(f"files lie under different partition keys: {sorted(map(list, keys))}")
    logs.partition_keys = list(min(keys, default=()))
    for key in logs.partition_keys:
        if key in OUR_NAMES:
            faults.append(f"the partition key {key!r} is the name of a column of ours: rename it")
    wanted = {"question": columns.question, "context": columns.context, "response": columns.response}
    shown: Counter[str] = Counter()
    for file in logs.files:
        assert file.schema is not None
        faults_of_file = _column_faults(file.schema, wanted, question_needed)
        if "row_id" in columns.model_fields_set and columns.row_id and columns.row_id not in file.schema.names:
            faults_of_file.append(f"no column {columns.row_id!r} (columns.row_id); it has {', '.join(file.schema.names)}")
        for fault in faults_of_file:
            shown[fault] += 1
            if shown[fault] == 1:
                faults.append(f"{file.path}: {fault}")
    if faults:
        more = sum(shown.values()) - len(shown)
        tail = [f"({more} more of the same in other files)"] if more else []
        raise InputError("\n  ".join([f"input {logs.uri}: {len(faults)} fault(s)", *faults, *tail]))
    logs.passthrough = _passthrough(logs, columns)


def check_row_ids(logs: Logs, files: Sequence[LogFile], columns: Columns, keep_bad: bool = False) -> None:
    """Check that the user's row ids are there and unique over these files.

    Args:
        logs: The input.
        files: Those of its files that are to be scored.
        columns: Our columns' names.
        keep_bad: Leave a file whose ids can't be read aside: reading it makes its rows `unreadable`.

    Raises:
        InputError: Ids are missing or occur twice; some are named.
    """
    hashes: list[np.ndarray[Any, np.dtype[np.uint64]]] = []
    nulls = 0
    unreadable: list[LogFile] = []
    name = columns.row_id
    with_ids = [f for f in files if f.schema is not None and name in f.schema.names]
    for file in with_ids:
        try:
            ids = _ids(logs, file, name or "")
        except InputError:
            if not keep_bad:
                raise
            unreadable.append(file)
            continue
        nulls += ids.null_count()
        hashes.append(ids.hash().to_numpy())
    if nulls:
        raise InputError(
            f"input {logs.uri}: {nulls} rows have no {name!r}: fill it, or set columns.row_id: null to have ids made"
        )
    if not hashes:
        return
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    suspects = set(values[counts > 1].tolist())
    if not suspects:
        return
    seen: Counter[str] = Counter()
    for file in (f for f in with_ids if f not in unreadable):
        ids = _ids(logs, file, name or "")
        seen.update(ids.filter(ids.hash().is_in(list(suspects))).to_list())
    twice = {i: n for i, n in seen.items() if n > 1}
    if twice:
        examples = ", ".join(f"{i!r} ({n} times)" for i, n in list(twice.items())[:5])
        raise InputError(
            f"input {logs.uri}: {len(twice)} ids in column {name!r} are not unique, such as {examples}: "
            "name another column in columns.row_id, or set it to null to have ids made from file and row"
        )


def read_logs(
    fs: pafs.FileSystem,
    file: LogFile,
    number: int,
    groups: Sequence[int],
    columns: Columns,
    passthrough: pa.Schema,
    keep_bad: bool,
) -> Iterator[pa.Table]:
    """Read row groups of a file as rows of the `logs` schema.

    Args:
        fs: File system.
        file: The file.
        number: Its number in the manifest: upper half of `row_key`.
        groups: Row groups to read.
        columns: Our columns' names in it.
        passthrough: The columns that are carried along.
        keep_bad: Rows in data pages that can't be read become rows with status unreadable, so that none is lost.

    Yields:
        Tables of the schema `logs_schema(passthrough)`, in file order.

    Raises:
        InputError: A data page can't be read, and `keep_bad` is not set.
    """
    with pq.ParquetFile(file.fs_path, filesystem=fs, page_checksum_verification=True, pre_buffer=False) as parquet:
        sizes = (parquet.metadata.row_group(g).num_rows for g in range(parquet.metadata.num_row_groups))
        starts = list(accumulate(sizes, initial=0))
        for group in groups:
            row, end = starts[group], starts[group + 1]
            try:
                for batch in parquet.iter_batches(READ_ROWS, row_groups=[group]):
                    yield _to_logs(pa.Table.from_batches([batch]), file, number, row, columns, passthrough)
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                if not keep_bad:
                    raise InputError(unreadable_message([file.uri], str(error))) from error
                for start in range(row, end, READ_ROWS):
                    yield _unreadable(file, number, range(start, min(end, start + READ_ROWS)), str(error), passthrough)


def group_sizes(fs: pafs.FileSystem, file: LogFile) -> list[int]:
    """Rows of each row group of a file, by its footer."""
    with pq.ParquetFile(file.fs_path, filesystem=fs) as parquet:
        return [parquet.metadata.row_group(group).num_rows for group in range(file.row_groups)]


def unreadable_message(uris: Sequence[str], reason: str) -> str:
    """What to say of files that can't be read, and the way out."""
    return (
        f"{', '.join(uris)} can't be read as Parquet: {reason.splitlines()[0]}. Mend or remove it, or score the rest with "
        "--on-bad-file skip"
    )


def _footer(fs: pafs.FileSystem, info: pafs.FileInfo, base: str, uri: str) -> LogFile:
    """Read a file's footer. Hive folders above the place the user named count too, so that `logs/` and `logs/dt=1/` give a
    file the same path, and its rows the same ids."""
    above = base.split("/")
    first_hive = next((i for i, part in enumerate(above) if _HIVE.match(part)), len(above))
    path = "/".join(info.path.split("/")[first_hive:])
    hive = [match.groups() for match in map(_HIVE.match, path.split("/")[:-1]) if match]
    scheme = uri.partition("://")[0] + "://" if "://" in uri else ""
    file = LogFile(path, scheme + info.path, info.path, info.size, tuple((key, unquote(value)) for key, value in hive))
    try:
        with pq.ParquetFile(info.path, filesystem=fs) as parquet:
            meta = parquet.metadata
            return replace(file, rows=meta.num_rows, schema=parquet.schema_arrow, row_groups=meta.num_row_groups)
    except (OSError, pa.ArrowException) as error:
        return replace(file, error=str(error).splitlines()[0])


def _glob_pattern(path: str) -> re.Pattern[str]:
    """`*` and `?` stay inside a folder, `**` crosses folders."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", path)
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(special.get(p, p if p.startswith("[") and p.endswith("]") else re.escape(p)) for p in pieces))


def _column_faults(schema: pa.Schema, wanted: dict[str, str], question_needed: bool) -> list[str]:
    faults = []
    missing = [
        f"{name!r} (columns.{ours})"
        for ours, name in wanted.items()
        if name not in schema.names and (ours != "question" or question_needed)
    ]
    if missing:
        faults.append(f"no column {', '.join(missing)}; it has {', '.join(schema.names)}")
    for ours, name in wanted.items():
        if name not in schema.names:
            continue
        kind = schema.field(name).type
        fine = _is_text(kind) or (ours == "context" and _is_list(kind) and _is_text(kind.value_type))
        if not fine:
            expected = "a string or a list of strings" if ours == "context" else "a string"
            faults.append(f"column {name!r} (columns.{ours}) must be {expected}, and is {kind}")
    return faults


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
    )


def _passthrough(logs: Logs, columns: Columns) -> pa.Schema:
    ours = {columns.question, columns.context, columns.response, columns.row_id, *logs.partition_keys}
    schemas = []
    for file in logs.files:
        assert file.schema is not None
        schemas.append(pa.schema([pa.field(passthrough_name(f.name), f.type) for f in file.schema if f.name not in ours]))
    try:
        merged = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"input {logs.uri}: a column has types that don't fit together in different files: {error}") from error
    names = Counter(merged.names)
    clash = [n for n, count in names.items() if count > 1]
    if clash:
        raise InputError(f"input {logs.uri}: two columns would both be called {clash}: rename one of each")
    return pa.schema([*merged, *(pa.field(key, pa.string()) for key in logs.partition_keys)])


def _ids(logs: Logs, file: LogFile, name: str) -> pl.Series:
    try:
        table = pq.read_table(file.fs_path, filesystem=logs.fs, columns=[name], partitioning=None)
        return pl.Series(name, table[name].cast(pa.string()), dtype=pl.String)
    except (OSError, pa.ArrowException) as error:
        reason = f"column {name!r}: {error}"
        raise InputError(unreadable_message([file.uri], reason)) from error


def _to_logs(table: pa.Table, file: LogFile, number: int, first_row: int, columns: Columns, passthrough: pa.Schema) -> pa.Table:
    size = table.num_rows
    rows = range(first_row, first_row + size)
    question = _text(table, columns.question, size)
    context = _context(table, columns.context, size)
    response = _text(table, columns.response, size)
    data: dict[str, Any] = {
        "row_key": pa.array([number << 32 | row for row in rows], type=pa.int64()),
        "row_id": (
            table[columns.row_id].cast(pa.string())
            if columns.row_id in table.column_names
            else pa.array([f"{file.path}#{row}" for row in rows])
        ),
        "question": question,
        "context": context,
        "response": response,
        "status": pa.array([Status.OK.value] * size),
        "error": pa.nulls(size, pa.string()),
    }
    values = dict(file.partition)
    source = {passthrough_name(name): name for name in table.column_names}
    for f in passthrough:
        if f.name in values:
            data[f.name] = pa.array([values[f.name]] * size, type=f.type)
        elif f.name in source and source[f.name] in table.column_names:
            data[f.name] = table[source[f.name]].cast(f.type)
        else:
            data[f.name] = pa.nulls(size, f.type)
    return pa.table(data, schema=logs_schema(passthrough))


def _unreadable(file: LogFile, number: int, rows: range, error: str, passthrough: pa.Schema) -> pa.Table:
    size = len(rows)
    values = dict(file.partition)
    data: dict[str, Any] = {f.name: pa.nulls(size, f.type) for f in [*LOGS, *passthrough]}
    data["row_key"] = pa.array([number << 32 | row for row in rows], type=pa.int64())
    data["row_id"] = pa.array([f"{file.path}#{row}" for row in rows])
    data["status"] = pa.array([Status.UNREADABLE.value] * size)
    data["error"] = pa.array([f"data page can't be read: {error.splitlines()[0]}"] * size)
    for key, value in values.items():
        data[key] = pa.array([value] * size, type=pa.string())
    return pa.table(data, schema=logs_schema(passthrough))


def _text(table: pa.Table, name: str, size: int) -> pa.ChunkedArray | pa.Array:
    return table[name].cast(pa.string()) if name in table.column_names else pa.nulls(size, pa.string())


def _context(table: pa.Table, name: str, size: int) -> pa.ChunkedArray | pa.Array:
    column = table[name].combine_chunks()
    if _is_list(column.type):
        return column.cast(pa.list_(pa.string()))
    texts = column.cast(pa.string())
    offsets = np.arange(size + 1, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), texts, mask=pc.is_null(texts))
