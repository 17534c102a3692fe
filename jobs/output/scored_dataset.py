"""Read `scored/`: its partitions, columns and rows, in batches of bounded memory. Whatever reads verdicts goes through it.

`open_scored` takes a `Snapshot`, whose files belong together, or the output folder itself where the caller holds the lock. Rows
come in the order of partitions, files and rows in them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from ragassay.jobs.storage import READERS, Folder
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

    def read(self, columns: Sequence[str] | None, rows: int) -> Iterator[pa.Table]:
        """Its rows in batches, with exactly the columns that are asked for."""
        names = None if columns is None else _column_names(self.parquet, columns)
        for batch in self.parquet.iter_batches(rows, row_groups=[self.number], columns=columns):
            yield pa.Table.from_batches([batch]) if names is None else _with_columns(batch, names, self.file.keys)

    def take(self, columns: Sequence[str], rows: Ints) -> Iterator[pa.Table]:
        """Some of its rows, by ascending numbers within the group; nothing behind the last of them is read."""
        begin = 0
        for table in self.read(columns, TEXT_ROWS) if len(rows) else ():
            end = begin + len(table)
            chosen = rows[(rows >= begin) & (rows < end)] - begin
            if len(chosen):
                yield table.take(pa.array(chosen))
            if rows[-1] < end:
                return
            begin = end


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
        chosen = np.asarray(rows, dtype=np.int64) + (self.first - self._group.first)
        with _readable(self.file.path):
            yield from self._group.take(columns, chosen)

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
    """The verdicts of an output.

    Attributes:
        fs: pyarrow file system.
        uri: The output folder, as the user named it.
        files: Its files, sorted.
    """

    fs: pafs.FileSystem
    uri: str
    files: tuple[DataFile, ...]
    _known: Mapping[str, Footer] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def partitions(self) -> dict[str, list[DataFile]]:
        """Hive path of each partition, as on disk -> its files."""
        found: dict[str, list[DataFile]] = {}
        for file in self.files:
            found.setdefault(file.partition, []).append(file)
        return found

    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of the columns of all files, hive keys among them."""
        return frozenset(name for file in self.files for name in (*self.schema_of(file).names, *file.keys))

    def schema_of(self, file: DataFile) -> pa.Schema:
        """The columns of a file."""
        return self._footers[file.path].schema

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

    def only(self, places: Iterable[str]) -> "ScoredDataset":
        """Some of its partitions, by their hive paths as on disk."""
        chosen = frozenset(places)
        return replace(self, files=tuple(file for file in self.files if file.partition in chosen))

    def matching(self, conditions: Sequence[str]) -> "ScoredDataset":
        """The partitions that meet all conditions.

        Args:
            conditions: Such as `dt>=2026-11-01`.

        Raises:
            ConfigError: A condition can't be read, names a key that a partition lacks, or none meets them all.
        """
        wanted = parse_conditions(conditions)
        keys_of = {place: hive_keys(place) for place in self.partitions}
        missing = [condition.key for condition in wanted if not all(condition.key in keys for keys in keys_of.values())]
        if missing:
            raise ConfigError(errors.NO_KEY, key=missing[0])
        chosen = [place for place, keys in keys_of.items() if matches(wanted, keys)]
        if keys_of and not chosen:
            raise ConfigError(errors.NO_PARTITION, reason=none_matches(wanted, set(map(hive_path, keys_of))))
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
                    for part in turned(_parts(group, columns, rows)):
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
                    here = in_file[(in_file >= group.first) & (in_file < group.first + group.size)] - group.first
                    for table in group.take(columns, here):
                        for row in table.to_pylist():
                            yield next(left), row

    def repeated_ids(self, *, is_counted: bool = True) -> dict[str, pa.Array]:
        """Ids that several rows of a partition have, by its hive path as on disk: labels that name one could mean any of them.

        Memory grows by 8 bytes a row of the largest partition.
        """
        return {place: self.only([place])._repeated(is_counted=is_counted) for place in self.partitions}

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
    files = sorted(DataFile(place, path) for place, paths in partitions(output, "scored").items() for path in paths)
    known = {}
    if isinstance(output, Snapshot):
        known = {file.info.path: file.footer for file in output.files if file.footer is not None}
    return ScoredDataset(output.fs, output.uri, tuple(files), known)


def read_file(fs: pafs.FileSystem, file: DataFile, columns: Sequence[str]) -> Iterator[Rows]:
    """The rows of one file in batches, where the dataset is not at hand: in a Ray task."""
    return ScoredDataset(fs, "", (file,)).batches(columns, is_counted=False)


def batches(
    fs: pafs.FileSystem, paths: Iterable[str], columns: Sequence[str] | None = None, rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Rows of files of any dataset in batches, file by file, so that a partition of any size takes the same memory."""
    for path in paths:
        with pq.ParquetFile(path, filesystem=fs) as parquet:
            for batch in parquet.iter_batches(rows, columns=columns):
                yield batch
                advance(batch.num_rows, "rows")


def first_key(fs: pafs.FileSystem, path: str) -> int:
    """The lowest `row_key` of a file, by its statistics."""
    metadata = pq.read_metadata(path, filesystem=fs)
    column = next(number for number in range(metadata.num_columns) if metadata.schema.column(number).path == "row_key")
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return min(int(group.column(column).statistics.min) for group in groups)


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
        raise OutputError(errors.UNREADABLE_VERDICTS, path=path, reason=error) from error


@contextmanager
def _open(fs: pafs.FileSystem, file: DataFile) -> Iterator[list[_RowGroup]]:
    """The row groups of a file, while it is open."""
    with pq.ParquetFile(file.path, filesystem=fs) as parquet:
        sizes = [parquet.metadata.row_group(number).num_rows for number in range(parquet.num_row_groups)]
        starts = np.cumsum([0, *sizes]).tolist()
        yield [_RowGroup(parquet, file, number, starts[number], size) for number, size in enumerate(sizes)]


def _parts(group: _RowGroup, columns: Sequence[str] | None, rows: int) -> Iterator[Rows]:
    first = group.first
    for table in group.read(columns, rows):
        yield Rows(group.file, first, table, group)
        first += len(table)


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
