"""Checks of an input that have to read whole columns: ids are there and unique, values fit the types they are written as."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.display.quoted import MAX_ID_CHARS, quote_value
from ragassay.jobs.input import errors
from ragassay.jobs.input.files import FAULT, LogFile, Logs, Reader, by_schema, unreadable_error
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.text import id_texts
from ragassay.jobs.input.twice import Twice
from ragassay.jobs.input.types import always_fits, plain
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import passthrough_name

if TYPE_CHECKING:
    import polars as pl

COLUMN_ROWS = 1 << 16

MOST_TWICE = 1 << 20
"""Ids that are counted one by one where they come twice."""


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
    name = columns.row_id
    with_ids = [f for f in files if f.schema is not None and name in f.schema.names]
    nulls = 0
    unreadable: list[LogFile] = []
    with Twice(sum(file.rows or 0 for file in with_ids)) as twice:
        for file in with_ids:
            try:
                ids = [(found.null_count(), found.hash().to_numpy()) for found in _ids(logs, file, name or "")]
            except InputError:
                if not keep_bad:
                    raise
                unreadable.append(file)
                continue
            for missing, hashes in ids:
                nulls += missing
                twice.add(hashes)
        _refuse_nulls(logs.uri, nulls, name)
        suspects = twice.found(MOST_TWICE).tolist()[:MOST_TWICE]
    if not suspects:
        return
    seen: Counter[str] = Counter()
    for file in (f for f in with_ids if f not in unreadable):
        for found in _ids(logs, file, name or ""):
            seen.update(found.filter(found.hash().is_in(suspects)).to_list())
    _refuse_twice(logs.uri, seen, name, more=len(suspects) == MOST_TWICE)


def check_ids(uri: str, ids: Sequence[str | None], columns: Columns) -> None:
    """`check_row_ids` of ids in memory.

    Args:
        uri: What the message calls the input.
        ids: A row's each.
        columns: Our columns' names.
    """
    _refuse_nulls(uri, sum(i is None for i in ids), columns.row_id)
    _refuse_twice(uri, Counter(ids), columns.row_id)


def _refuse_nulls(uri: str, nulls: int, name: str | None) -> None:
    if nulls:
        raise InputError(errors.MISSING_IDS, uri=uri, rows=nulls, column=name)


def _refuse_twice(uri: str, seen: Counter[str | None] | Counter[str], name: str | None, *, more: bool = False) -> None:
    twice = {i: n for i, n in seen.items() if n > 1}
    if twice:
        examples = ", ".join(f"{quote_value(i, MAX_ID_CHARS)} ({n} times)" for i, n in list(twice.items())[:5])
        raise InputError(
            errors.REPEATED_IDS, uri=uri, least="at least " if more else "", ids=len(twice), column=name, examples=examples
        )


def check_types(logs: Logs, files: Sequence[LogFile], wanted: pa.Schema) -> None:
    """Check that no value of the columns that are carried along changes by being written with the type that all files share.

    Args:
        logs: The input.
        files: Those of its files that are to be scored.
        wanted: The columns that are carried along, with the types they are written as.

    Raises:
        InputError: A value would change, such as an integer above 2^53 as a float; the column is named.
    """
    for schema, alike in by_schema(files).items():
        for field in schema:
            name = passthrough_name(field.name)
            if name not in wanted.names or name in logs.partition_keys:
                continue
            kind = wanted.field(name).type
            if always_fits(field.type, kind):
                continue
            for file in alike:
                if not column_fits(logs.fs, file, field, kind):
                    raise InputError(
                        errors.VALUES_TOO_WIDE, uri=logs.uri, column=field.name, type=field.type, path=file.path, wanted=kind
                    )


def column_fits(fs: pafs.FileSystem, file: LogFile, field: pa.Field, kind: pa.DataType) -> bool:
    """Whether all values of a file's column can be cast to a type, and nothing of them is lost."""
    known = always_fits(field.type, kind)
    if known is not None:
        return known
    with open_log(fs, file) as log:
        for group in range(len(log.sizes)):
            for array in _arrays_of(log, group, field.name):
                try:
                    plain(array).cast(kind)
                except pa.ArrowException:
                    return False
    return True


def _arrays_of(log: Reader, group: int, name: str) -> Iterator[pa.Array]:
    """A column's values as far as they can be read: what can't be is told where the rows are."""
    batches = log.batches(group, COLUMN_ROWS, [name])
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException):
            return
        if batch is None:
            return
        yield batch[name]


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch that can be read."""
    return batch.filter(pc.is_null(batch[FAULT])) if FAULT in batch.schema.names else batch


def _ids(logs: Logs, file: LogFile, name: str) -> Iterator["pl.Series"]:
    """The ids of a file as strings, some at a time."""
    import polars as pl

    try:
        with open_log(logs.fs, file) as log:
            for group in range(len(log.sizes)):
                for batch in log.batches(group, COLUMN_ROWS, [name]):
                    yield pl.Series(name, id_texts(_readable(batch)[name])[0], dtype=pl.String)
    except (OSError, pa.ArrowException) as error:
        reason = f"column {name!r}: {error}"
        raise unreadable_error([file.uri], reason) from error
