"""Lance datasets: the fragments of a version, and those that came in after an earlier one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.tables import errors
from ragassay.jobs.input.tables.places import library, location, storage_options
from ragassay.jobs.input.tables.since import Growth, Runs, begin_of
from ragassay.jobs.storage.folder import Folder, real_path
from ragassay.pipeline.errors import InputError
from ragassay.schemas.source import SourceTable

VERSIONS = "_versions"
_NO_NEW_ROWS = ("Rewrite", "Delete", "Restore")
"""Operations after which a dataset has no row that it did not have before; Rewrite is a compaction."""

_AT_ONCE = 4  # versions whose fragments are held: neighbours are compared


@dataclass(frozen=True)
class Fragment:
    """How a fragment is read: by the library, which leaves out what is deleted.

    Attributes:
        uri: The dataset.
        options: Of its object store.
        version: Version whose deletes count.
        number: Id of the fragment.
        rows: Rows that are left in it.
    """

    uri: str
    options: Mapping[str, str]
    version: int
    number: int
    rows: int

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_Reader"]:
        """Open it."""
        lance = library("lance", f"the Lance dataset {self.uri}")
        dataset = lance.dataset(self.uri, version=self.version, storage_options=dict(self.options) or None)
        yield _Reader(dataset.get_fragment(self.number), self.rows)


class _Reader:
    def __init__(self, fragment: Any, rows: int) -> None:
        self._fragment = fragment
        self.sizes = [rows]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = None if columns is None else [name for name in columns if name in self._fragment.schema.names]
        # Rows in order, a few batches ahead: what is read ahead stands in memory.
        yield from self._fragment.to_batches(columns=names, batch_size=rows, batch_readahead=2)


def find_lance(folder: Folder, source: InputConfig, runs: Runs) -> Logs:
    """The fragments of a Lance dataset: those of a version, or what came in since another.

    Args:
        folder: The dataset.
        source: The job's `input`: `version` (None is the latest), `since`.
        runs: Of the output folder.

    Raises:
        InputError: The dataset can't be read as it stands: a rewrite, a version that is gone.
    """
    versions = _Versions(folder)
    version = versions.at(source.version).version
    begin = begin_of("lance", folder.address, version, source, runs)
    grown = Growth(folder.address, "Lance")
    if begin.whole is not None:
        grown.keep(versions.files(begin.whole).values())
    for number in range(begin.since + 1, version + 1):
        before, now = versions.files(number - 1), versions.files(number)
        operation = versions.operation(number)
        changed = {path for path in before.keys() & now.keys() if before[path].rows != now[path].rows}
        # Rows that are updated stand in a new fragment, and are deleted from their own: both are what it changed.
        touched = changed if operation not in _NO_NEW_ROWS else set()
        added = [now[path] for path in (now.keys() - before.keys()) | touched]
        new_rows = operation not in _NO_NEW_ROWS
        removed = (before.keys() - now.keys()) | touched
        grown.step(number, operation, added, removed, new_rows=new_rows, before=versions.as_of(number - 1))
        if number in begin.registered:
            grown.keep(as_of=versions.as_of(number))
    grown.keep(as_of=versions.as_of(version))
    since = begin.since if begin.whole is None else None
    lineage = SourceTable("lance", folder.address, version, since)
    own = {real_path(folder.fs, folder.root): folder.root}
    return Logs(folder.address, folder.fs, [file for file in grown.files if file.rows], [], own, source=lineage)


class _Versions:
    """The versions of a dataset."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lance = library("lance", f"the Lance dataset {folder.address}")
        self._options = storage_options(folder)
        self.files = lru_cache(_AT_ONCE)(self._files)

    def at(self, version: int | None) -> Any:
        """The dataset at a version; None is the latest."""
        try:
            return self._lance.dataset(location(self._folder), version=version, storage_options=self._options or None)
        except (ValueError, OSError) as error:
            at = "" if version is None else f" at version {version} (cleaned up?)"
            said = str(error).splitlines()[0].partition(", /")[0]  # its own source files come behind
            raise InputError(errors.UNREADABLE_LANCE, table=self._folder.address, at=at, reason=said) from error

    def operation(self, version: int) -> str:
        """What a version did."""
        transaction = self.at(None).read_transaction(version)
        return "unknown" if transaction is None else type(transaction.operation).__name__

    def as_of(self, version: int) -> Callable[[LogFile], LogFile]:
        """A fragment as a version has it, or as it is where it has not."""
        return lambda file: self.files(version).get(file.path, file)

    def _files(self, version: int) -> dict[str, LogFile]:
        """The fragments of a version, by path."""
        if version < 1:  # before the first
            return {}
        dataset = self.at(version)
        files = (self._file(dataset, version, fragment.metadata) for fragment in dataset.get_fragments())
        return {file.path: file for file in files}

    def _file(self, dataset: Any, version: int, fragment: Any) -> LogFile:
        path = f"fragment-{fragment.id}"
        parts = [part.path for part in fragment.files]
        digest = blake2b(f"{parts[:1]} {fragment.physical_rows}".encode(), digest_size=16).hexdigest()
        view = Fragment(location(self._folder), self._options, version, fragment.id, fragment.num_rows)
        return LogFile(
            path, self._folder.format_address(path), self._folder.path(path), 0, (), rows=fragment.num_rows, schema=dataset.schema,
            row_groups=1, digest=digest, view=view,
        )  # fmt: skip
