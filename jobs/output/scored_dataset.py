"""Read `raw/` and `scored/`: partitions, columns and rows, in batches of bounded memory. Whatever reads scores or verdicts goes
through it.

`open_scored` takes a `Snapshot`, whose files belong together, or the output folder itself where the caller holds the lock. Rows
come in the order of partitions, files and rows in them. A part of a dataset can be sent to a Ray task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.output import errors
from ragassay.jobs.output.partition_filter import matches, none_matches, parse_conditions
from ragassay.jobs.output.partitions import BATCH_ROWS, hive_keys, hive_path, partitions
from ragassay.jobs.output.snapshot import Footer, Snapshot, read_footer
from ragassay.jobs.progress.task import advance
from ragassay.jobs.storage.folder import READERS, Folder
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.pipeline.errors import ConfigError, InputError, OutputError

TEXT_ROWS = 256
"""Rows in memory at a time where texts are read."""


@dataclass(frozen=True, order=True)
class DataFile:
    """A Parquet file of the dataset.

    Attributes:
        partition: Hive path of its partition, as on disk.
        path: Its path on the file system.
    """

    partition: str
    path: str

    @property
    def partition_name(self) -> str:
        """Hive path of its partition with plain values."""
        return hive_path(self.partition)

    @property
    def keys(self) -> dict[str, str]:
        """Hive keys of its partition with their values."""
        return hive_keys(self.partition)


@dataclass(frozen=True, order=True)
class Position:
    """Where a row is stored.

    Attributes:
        file: Its file.
        row: Its number in the file, from 0.
    """

    file: DataFile
    row: int


@dataclass(frozen=True)
class _RowGroup:
    """A row group of an open file; `first` is the number of its first row in the file."""

    parquet: pq.ParquetFile
    file: DataFile
    number: int
    first: int
    size: int

    def read(self, columns: Sequence[str] | None, rows: int) -> "Iterator[Rows]":
        """Its rows in batches, with exactly the columns that are asked for."""
        names, first = None if columns is None else _column_names(self.parquet, columns), self.first
        for batch in self.parquet.iter_batches(rows, row_groups=[self.number], columns=columns):
            table = pa.Table.from_batches([batch]) if names is None else _with_columns(batch, names, self.file.keys)
            yield Rows(self.file, first, table, self)
            first += len(table)

    def take(self, columns: Sequence[str], rows: Ints) -> Iterator[pa.Table]:
        """Some of its rows, by ascending numbers in the file; nothing behind the last of them is read."""
        for part in self.read(columns, TEXT_ROWS) if len(rows) else ():
            chosen = rows[(rows >= part.first) & (rows < part.first + len(part))] - part.first
            if len(chosen):
                yield part.table.take(pa.array(chosen))
            if rows[-1] < part.first + len(part):
                return


@dataclass(frozen=True)
class Rows:
    """Rows of a file that follow each other.

    Attributes:
        file: Their file.
        first: Number of the first of them in the file.
        table: The columns that were asked for. A hive key is a column too; a column that the file lacks is null.
    """

    file: DataFile
    first: int
    table: pa.Table
    _group: _RowGroup = field(repr=False)

    def __len__(self) -> int:
        """How many rows these are."""
        return len(self.table)

    @property
    def batch(self) -> pa.RecordBatch:
        """The columns that were asked for, as one batch."""
        return as_batch(self.table)

    def position(self, row: int) -> Position:
        """Where one of these rows is stored."""
        return Position(self.file, self.first + row)

    def take(self, columns: Sequence[str], rows: Sequence[int] | Ints) -> Iterator[pa.Table]:
        """Read other columns of some of these rows, few at a time.

        Args:
            columns: The columns.
            rows: Numbers of the rows among these, ascending.
        """
        with _readable(self.file.path):
            yield from self._group.take(columns, np.asarray(rows, dtype=np.int64) + self.first)

    def read(self, columns: Sequence[str], rows: Sequence[int] | Ints) -> pa.Table:
        """Read other columns of some of these rows, at least one, at once; see `take`."""
        return pa.concat_tables(self.take(columns, rows))

    def matches(self, where: Mapping[str, str]) -> Bools:
        """Whether each row has the wanted values.

        Args:
            where: Column, which was asked for -> value, as `as_text` has it.
        """
        found = np.ones(len(self), dtype=bool)
        for name, wanted in where.items():
            found &= np.array([as_text(value) == wanted for value in self.table[name].to_pylist()], dtype=bool)
        return found


@dataclass(frozen=True)
class ScoredDataset:
    """The scores (`raw/`) or the verdicts (`scored/`) of an output.

    Attributes:
        fs: pyarrow file system.
        files: Its files, sorted.
        uri: The output folder, as the user named it.
    """

    fs: pafs.FileSystem
    files: tuple[DataFile, ...]
    uri: str = ""
    _known: Mapping[str, Footer] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def partitions(self) -> "dict[str, ScoredDataset]":
        """Hive path of each partition, as on disk -> its rows."""
        groups = groupby(self.files, lambda file: file.partition)
        return {place: replace(self, files=tuple(files)) for place, files in groups}

    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of the columns of all files, hive keys among them."""
        return frozenset(name for file in self.files for name in (*self.schema_of(file).names, *file.keys))

    def schema_of(self, file: DataFile) -> pa.Schema:
        """The columns of a file."""
        return self._footers[file.path].schema

    def first_key(self, file: DataFile) -> int:
        """The lowest `row_key` of a file, by its statistics."""
        return self._footers[file.path].first_key

    def count_rows(self) -> int:
        """How many rows there are."""
        return sum(footer.rows for footer in self._footers.values())

    def require_verdicts(self) -> "ScoredDataset":
        """This dataset.

        Raises:
            OutputError: It is empty.
        """
        if not self.files:
            raise OutputError(errors.NO_VERDICTS, output=self.uri)
        return self

    def require_columns(self, names: Iterable[str], setting: str = "") -> None:
        """Check that some partition has each of these columns.

        Args:
            names: The columns.
            setting: What names them, for the message.

        Raises:
            InputError: None has one of them.
        """
        if missing := next((name for name in names if name not in self.columns), None):
            named_by = f" ({setting})" if setting else ""
            columns = ", ".join(sorted(self.columns))
            raise InputError(errors.NO_COLUMN, output=self.uri, column=missing, setting=named_by, columns=columns)

    def only(self, names: Iterable[str]) -> "ScoredDataset":
        """Some of its partitions, by their hive paths with plain values."""
        chosen = frozenset(names)
        return replace(self, files=tuple(file for file in self.files if file.partition_name in chosen))

    def without(self, names: Iterable[str]) -> "ScoredDataset":
        """Its other partitions, see `only`."""
        return self.only({file.partition_name for file in self.files}.difference(names))

    def matching(self, conditions: Sequence[str]) -> "ScoredDataset":
        """The partitions that meet all conditions.

        Args:
            conditions: Such as `dt>=2026-11-01`.

        Raises:
            ConfigError: A condition can't be read, names a key that a partition lacks, or none meets them all.
        """
        wanted = parse_conditions(conditions)
        keys_of = {hive_path(place): hive_keys(place) for place in self.partitions}
        missing = [condition.key for condition in wanted if not all(condition.key in keys for keys in keys_of.values())]
        if missing:
            raise ConfigError(errors.NO_KEY, key=missing[0])
        chosen = [name for name, keys in keys_of.items() if matches(wanted, keys)]
        if keys_of and not chosen:
            raise ConfigError(errors.NO_PARTITION, reason=none_matches(wanted, set(keys_of)))
        return self.only(chosen)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        rows: int = BATCH_ROWS,
        *,
        backwards: bool = False,
        is_counted: bool = True,
    ) -> Iterator[Rows]:
        """Read rows in batches, so that a partition of any size takes the same memory.

        Args:
            columns: Columns, hive keys, or paths to parts of nested columns (`sentences.list.element.flagged`); None reads
                all columns of the files.
            rows: Rows of a batch at most; fewer where texts are read.
            backwards: From the last batch to the first; the rows of a batch stand in their order.
            is_counted: Whether the rows count in the task whose progress is shown (`jobs.progress.task.advance`).

        Raises:
            OutputError: A file can't be read.
        """
        turned: Callable[[Iterable[Any]], Iterable[Any]] = _reversed if backwards else iter
        for file in turned(self.files):
            with _readable(file.path), _open(self.fs, file) as groups:
                for group in turned(groups):
                    for part in turned(group.read(columns, rows)):
                        yield part
                        if is_counted:
                            advance(len(part), "rows")

    def rows(self, columns: Sequence[str], rows: int = TEXT_ROWS) -> Iterator[tuple[DataFile, dict[str, Any]]]:
        """Read rows as plain values, each with its file; see `batches`."""
        for part in self.batches(columns, rows):
            for row in part.table.to_pylist():
                yield part.file, row

    def rows_at(self, positions: Sequence[Position], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read rows whose positions are known.

        Args:
            positions: Where they are stored, in any order.
            columns: See `batches`.

        Yields:
            Number of the position, and its row; in the order of the files.

        Raises:
            OutputError: A file can't be read.
        """
        wanted: dict[DataFile, list[int]] = {}
        for number in sorted(range(len(positions)), key=positions.__getitem__):
            wanted.setdefault(positions[number].file, []).append(number)
        for file, numbers in wanted.items():
            in_file = np.array([positions[number].row for number in numbers], dtype=np.int64)
            left = iter(numbers)
            with _readable(file.path), _open(self.fs, file) as groups:
                for group in groups:
                    here = in_file[(in_file >= group.first) & (in_file < group.first + group.size)]
                    for table in group.take(columns, here):
                        for row in table.to_pylist():
                            yield next(left), row

    def repeated_ids(self, *, is_counted: bool = True) -> dict[str, pa.Array]:
        """Ids that several rows of a partition have, by its hive path as on disk: labels that name one could mean any of them.

        Memory grows by 8 bytes a row of the largest partition.
        """
        return {place: part._repeated(is_counted=is_counted) for place, part in self.partitions.items()}

    def _repeated(self, *, is_counted: bool) -> pa.Array:
        import polars as pl  # here: `check`, which needs none of this, starts without it

        parts = self.batches(["row_id"], is_counted=is_counted)
        hashes = pl.concat([pl.Series(dtype=pl.UInt64), *(_hashes(part.table["row_id"]) for part in parts)])
        several = hashes.filter(hashes.is_duplicated()).unique()
        if not len(several):
            return pa.array([], pa.string())
        ids = [
            part.table["row_id"].filter(_hashes(part.table["row_id"]).is_in(several.implode()).to_arrow())
            for part in self.batches(["row_id"], is_counted=False)
        ]
        counts = pc.value_counts(pa.chunked_array([chunk for column in ids for chunk in column.chunks], pa.string()))
        return counts.field("values").filter(pc.greater(counts.field("counts"), 1))  # hashes of different ids may be equal

    @cached_property
    def _footers(self) -> dict[str, Footer]:
        """Path -> footer of each file; those that the snapshot has not read are read now."""

        def footer_of(path: str) -> Footer:
            if path in self._known:
                return self._known[path]
            with _readable(path):
                return read_footer(self.fs, path)

        paths = [file.path for file in self.files]
        with ThreadPoolExecutor(READERS) as readers:
            return dict(zip(paths, readers.map(footer_of, paths), strict=True))


def open_scored(output: Folder) -> ScoredDataset:
    """The verdicts of an output folder, as it is or as a snapshot has it."""
    known = {}
    if isinstance(output, Snapshot):
        known = {file.info.path: file.footer for file in output.files if file.footer is not None}
    return ScoredDataset(output.fs, _files(output, "scored"), output.uri, known)


def open_raw(output: Folder) -> ScoredDataset:
    """The scores of an output folder, without verdicts, as it is."""
    return ScoredDataset(output.fs, _files(output, "raw"), output.uri)


def read_file(fs: pafs.FileSystem, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[Rows]:
    """The rows of one file in batches, where the dataset is not at hand: in a Ray task."""
    return ScoredDataset(fs, (file,)).batches(columns, is_counted=False)


def read_rows(fs: pafs.FileSystem, file: DataFile, keys: Ints, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of one file that have these `row_key`s, few at a time; of all others only the key is read."""
    for rows in read_file(fs, file, ["row_key"]):
        yield from rows.take(columns, np.flatnonzero(np.isin(rows.table["row_key"].to_numpy(), keys)))


def batches(
    fs: pafs.FileSystem, paths: Iterable[str], columns: Sequence[str] | None = None, rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Rows of files that are written beside `scored/` in batches, file by file."""
    dataset = ScoredDataset(fs, tuple(DataFile("", path) for path in paths))
    return (part.batch for part in dataset.batches(columns, rows))


def _files(output: Folder, dataset: str) -> tuple[DataFile, ...]:
    return tuple(sorted(DataFile(place, path) for place, paths in partitions(output, dataset).items() for path in paths))


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """A table that fits in memory as one batch."""
    parts = table.combine_chunks().to_batches()
    return parts[0] if parts else pa.RecordBatch.from_pylist([], schema=table.schema)


def as_text(value: Any) -> str:
    """A value of a column as text; a point in time is its day, a boolean true or false."""
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    return value.date().isoformat() if hasattr(value, "date") else str(value)


def _hashes(ids: pa.ChunkedArray) -> Any:
    import polars as pl

    return pl.Series(ids).cast(pl.String).hash()


def _reversed(items: Iterable[Any]) -> Iterable[Any]:
    return list(items)[::-1]


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        hint = ". `ragassay finalize` writes scored/ anew" if "/scored/" in path else ""
        raise OutputError(errors.UNREADABLE_ROWS, path=path, reason=error, hint=hint) from error


@contextmanager
def _open(fs: pafs.FileSystem, file: DataFile) -> Iterator[list[_RowGroup]]:
    """The row groups of a file, while it is open."""
    with pq.ParquetFile(file.path, filesystem=fs) as parquet:
        sizes = [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)]
        starts = np.cumsum([0, *sizes]).tolist()
        yield [_RowGroup(parquet, file, number, starts[number], size) for number, size in enumerate(sizes)]


def _column_names(parquet: pq.ParquetFile, columns: Sequence[str]) -> list[str]:
    """Columns of the table that paths lead to: a path to a part of a nested column leads to that column."""
    names = parquet.schema_arrow.names
    leaves = [parquet.schema.column(number).path for number in range(len(parquet.schema.names))]

    def name_of(path: str) -> str:
        is_part = path not in names and any(f"{leaf}.".startswith(f"{path}.") for leaf in leaves)
        return path.partition(".")[0] if is_part else path

    return list(dict.fromkeys(map(name_of, columns)))


def _with_columns(batch: pa.RecordBatch, names: Sequence[str], keys: Mapping[str, str]) -> pa.Table:
    """The columns by name: from the file, from the keys of its partition, or nulls."""

    def column(name: str) -> pa.Array:
        if name in batch.schema.names:
            return batch[name]
        return pa.array([keys[name]] * batch.num_rows, pa.string()) if name in keys else pa.nulls(batch.num_rows)

    return pa.table({name: column(name) for name in names})
