"""Read logs as rows of the `logs` schema."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.input.files import FAULT, LogFile, unreadable_error
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.messages import talks
from ragassay.jobs.input.passages import TEXTS, passages
from ragassay.jobs.input.text import id_texts, mended, texts
from ragassay.jobs.input.types import plain
from ragassay.jobs.storage.object_store import gave_way, gave_way_error
from ragassay.schemas.columns import LOGS, Status, logs_schema, passthrough_name

NO_UTF8 = "bytes that are no UTF-8"
READ_ROWS = 256  # rows decoded at a time, so that a row group of a million rows never stands in memory whole


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

    A row with bytes that are no UTF-8 in a column of text has the status unreadable, as has one whose JSON can't be read, and a
    line that is none.

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
        InputError: A data page can't be read, and `keep_bad` is not set; or the object store gave way.
    """
    with open_log(fs, file) as log:
        starts = list(accumulate(log.sizes, initial=0))
        for group in groups:
            row, end = starts[group], starts[group + 1]
            try:
                for batch in log.batches(group, READ_ROWS):
                    yield to_logs(batch, file, number, row, columns, passthrough)
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                if gave_way(error):  # no fault of the file, which opened: even where access ends, the next run reads the rest
                    raise gave_way_error(error, file.uri) from error
                if not keep_bad:
                    raise unreadable_error([file.uri], str(error)) from error
                for start in range(row, end, READ_ROWS):
                    yield _unreadable(file, number, range(start, min(end, start + READ_ROWS)), str(error), passthrough)


def to_logs(
    batch: pa.RecordBatch, file: LogFile, number: int, first_row: int, columns: Columns, passthrough: pa.Schema
) -> pa.Table:
    """Rows of a file as rows of the `logs` schema; see `read_logs`.

    Args:
        batch: The rows.
        file: The file.
        number: Its number in the manifest.
        first_row: Number of the first of them in it.
        columns: Our columns' names in it.
        passthrough: The columns that are carried along.
    """
    size, names = batch.num_rows, set(batch.schema.names)
    rows = range(first_row, first_row + size)
    faults: dict[int, str] = {}

    def without_faults(name: str, found: tuple[pa.Array, list[int]]) -> pa.Array:
        array, bad = found
        _note(faults, bad, name, NO_UTF8)
        return array

    made = pa.array([f"{file.path}#{row}" for row in rows], pa.string())
    ours = _of_columns(batch, columns, faults) if columns.messages is None else _of_talks(batch, columns, faults)
    data: dict[str, Any] = {
        "row_key": pa.array([number << 32 | row for row in rows], type=pa.int64()),
        "row_id": (
            without_faults(columns.row_id, id_texts(batch[columns.row_id]))
            if columns.row_id is not None and columns.row_id in names
            else made
        ),
        **ours,
    }
    values = dict(file.partition)
    source = {passthrough_name(name): name for name in batch.schema.names}
    for f in passthrough:
        if f.name in values:
            data[f.name] = pa.array([values[f.name]] * size, type=f.type)
        elif f.name in source:
            data[f.name] = without_faults(source[f.name], mended(plain(batch[source[f.name]]).cast(f.type)))
        else:
            data[f.name] = pa.nulls(size, f.type)
    if FAULT in names:
        faults |= {row: why for row, why in enumerate(batch[FAULT].to_pylist()) if why is not None}
        data["row_id"] = pc.coalesce(data["row_id"], made)  # where a line can't be read, its id can't; others have theirs
    data["status"] = pa.array([Status.UNREADABLE.value if row in faults else Status.OK.value for row in range(size)])
    data["error"] = pa.array([faults.get(row) for row in range(size)], pa.string())
    return pa.table(data, schema=logs_schema(passthrough))


def _of_columns(batch: pa.RecordBatch, columns: Columns, faults: dict[int, str]) -> dict[str, pa.Array]:
    """Our columns of texts; rows that can't be read are put into `faults`."""
    size, names = batch.num_rows, set(batch.schema.names)
    found = passages(batch[columns.context]) if columns.context in names else None
    data = {
        "context": found.context if found else pa.nulls(size, TEXTS),
        "passage_ids": found.ids if found else pa.nulls(size, TEXTS),
    }
    for ours, name in (("question", columns.question), ("response", columns.response)):
        data[ours], bad = texts(batch[name]) if name in names else (pa.nulls(size, pa.string()), [])
        _note(faults, bad, name, NO_UTF8)
    if found:
        _note(faults, found.no_utf8, columns.context, NO_UTF8)
        _note(faults, found.no_json, columns.context, "JSON that can't be read: it is cut off")
    return data


def _of_talks(batch: pa.RecordBatch, columns: Columns, faults: dict[int, str]) -> dict[str, pa.Array]:
    """The same, from conversations."""
    name = columns.messages or ""
    found = talks(batch[name] if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string()), columns.passage_roles)
    _note(faults, found.no_utf8, name, NO_UTF8)
    _note(faults, found.no_talk, name, "no messages with a role and a content, or JSON that can't be read")
    return {"question": found.question, "context": found.context, "passage_ids": found.ids, "response": found.response}


def _note(faults: dict[int, str], rows: Sequence[int], name: str, what: str) -> None:
    for row in rows:
        faults.setdefault(row, f"column {name!r} holds {what}")


def _unreadable(file: LogFile, number: int, rows: range, error: str, passthrough: pa.Schema) -> pa.Table:
    size = len(rows)
    values = dict(file.partition)
    data: dict[str, Any] = {f.name: pa.nulls(size, f.type) for f in [*LOGS, *passthrough]}
    data["row_key"] = pa.array([number << 32 | row for row in rows], type=pa.int64())
    data["row_id"] = pa.array([f"{file.path}#{row}" for row in rows])
    data["status"] = pa.array([Status.UNREADABLE.value] * size)
    data["error"] = pa.array([hide_secrets(f"data page can't be read: {error.splitlines()[0]}")] * size)
    for key, value in values.items():
        data[key] = pa.array([value] * size, type=pa.string())
    return pa.table(data, schema=logs_schema(passthrough))
