"""A Parquet file of a table, with the table's columns: renamed ones by their new names, later ones as nulls."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.input.files import LogFile, Reader
from ragassay.jobs.input.parquet import open_parquet
from ragassay.jobs.input.types import plain
from ragassay.pipeline.arrays import Ints

CHANGE = "_change_type"
INSERT = "insert"


@dataclass(frozen=True)
class Projected:
    """How a data file of a table is read.

    Attributes:
        names: (name in the table, name in the file) of the columns that the file has.
        missing: Columns of the table that it lacks: all null.
        inserts: Of a file of a change data feed, how many rows of each row group were inserted: only they are read. None reads
            all rows.
        deleted: Rows that are deleted and still stand in the file: their numbers in order, as bytes of int64.
    """

    names: tuple[tuple[str, str], ...]
    missing: pa.Schema
    inserts: tuple[int, ...] | None = None
    deleted: bytes = b""

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_Reader"]:
        """Open it."""
        with open_parquet(fs, path) as parquet:
            yield _Reader(parquet, self)


class _Reader:
    def __init__(self, parquet: Reader, view: Projected) -> None:
        self._parquet, self._view = parquet, view
        self._deleted = np.frombuffer(view.deleted, np.int64)
        self._starts = np.cumsum([0, *parquet.sizes])
        gone = np.diff(np.searchsorted(self._deleted, self._starts))
        self.sizes = [size - int(less) for size, less in zip(view.inserts or parquet.sizes, gone, strict=True)]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        view = self._view
        names = [(mine, theirs) for mine, theirs in view.names if columns is None or mine in columns]
        missing = [field for field in view.missing if columns is None or field.name in columns]
        theirs = [name for _, name in names] + ([CHANGE] if view.inserts is not None else [])
        # A batch of no columns has no rows, so one is read at least.
        row = int(self._starts[group])
        for read in self._parquet.batches(group, rows, theirs or None):
            batch = self._live(read, np.arange(row, row + read.num_rows))
            row += read.num_rows
            arrays = [batch[name] for _, name in names] + [pa.nulls(batch.num_rows, f.type) for f in missing]
            fields = [batch.schema.field(name).with_name(mine) for mine, name in names] + list(missing)
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _live(self, batch: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
        """The rows of a batch that are to be read; `places` are their numbers in the file."""
        if self._view.inserts is None and not len(self._deleted):
            return batch
        live = ~np.isin(places, self._deleted)
        if self._view.inserts is not None:
            live &= pc.fill_null(pc.equal(plain(batch[CHANGE]), INSERT), False).to_numpy(zero_copy_only=False)
        # Views, with which change feeds are written, can't be filtered.
        whole = pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], names=batch.schema.names)
        return whole.filter(pa.array(live))


def projected(file: LogFile, table: pa.Schema, name_in: Callable[[pa.Field, pa.Schema], str | None]) -> LogFile:
    """A data file, looked at as a Parquet file, with its table's columns.

    Args:
        file: Its entry; its schema is that of its footer, and a view says which of its rows are deleted.
        table: The table's columns.
        name_in: Name of a column of the table in the file's schema; None where the file lacks it.
    """
    if file.schema is None:
        return file
    deleted = file.view.deleted if isinstance(file.view, Projected) else b""
    found = [(field, name_in(field, file.schema)) for field in table]
    names = tuple((field.name, name) for field, name in found if name is not None)
    missing = pa.schema([field.remove_metadata() for field, name in found if name is None])
    if not missing and not deleted and names == tuple((name, name) for name in file.schema.names):
        return file
    rows = None if file.rows is None else file.rows - len(deleted) // np.dtype(np.int64).itemsize
    mine = [file.schema.field(theirs).with_name(ours) for ours, theirs in names]
    return replace(file, rows=rows, schema=pa.schema([*mine, *missing]), view=Projected(names, missing, deleted=deleted))
