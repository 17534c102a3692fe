"""What an input is made of: its files, and what their footers say."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.display.address import hide_secrets, strip_credentials
from ragassay.jobs.input import errors
from ragassay.pipeline.errors import InputError
from ragassay.schemas.source import SourceTable

FAULT = "\0fault"
"""Column that a reader adds, where it has rows that can't be read: why a row can't, null where it can."""


@dataclass(frozen=True)
class LogFile:
    """A file of logs.

    Attributes:
        path: Path below the input's root, hive folders kept: the stable part of its rows' ids.
        uri: Where it lies.
        fs_path: Its path on the file system.
        size: Bytes.
        partition: Its hive folders, as (key, value).
        rows: Rows it has; None where it can't be read.
        schema: Its Arrow schema; None where it can't be read.
        row_groups: Row groups it has: parts that can be read alone.
        digest: Tells whether it is the same; of Parquet the footer's, which says where all data lie and most of their extremes.
            None where it can't be read.
        error: Why it can't be read.
        mtime: When it was last written, nanoseconds since 1970; None where the store doesn't tell.
        view: How it is read, where that takes more than its path; None goes by the end of its name.
    """

    path: str
    uri: str
    fs_path: str
    size: int
    partition: tuple[tuple[str, str], ...]
    rows: int | None = None
    schema: pa.Schema | None = None
    row_groups: int = 0
    digest: str | None = None
    error: str | None = None
    mtime: int | None = None
    view: "View | None" = None

    def __post_init__(self) -> None:
        """The error is a library's, and goes into the manifest: it may quote a URI whole."""
        if self.error is not None:
            object.__setattr__(self, "error", hide_secrets(self.error))

    @property
    def partition_path(self) -> str:
        """Hive path of its folder, such as `dt=2026-11-20`; empty where there is none."""
        return "/".join(f"{key}={value}" for key, value in self.partition)


class Reader(Protocol):
    """An open file of logs.

    Attributes:
        sizes: Rows of each of its row groups: parts that can be read alone.
    """

    sizes: list[int]

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows of a row group.

        Args:
            group: Its number.
            rows: Rows of a batch, at most.
            columns: Which; None reads all.

        Raises:
            OSError, pa.ArrowException: What is in the file can't be read.
        """
        ...


class View(Protocol):
    """How one file is read, as something found out when it was looked at: it travels to where the file is read."""

    def open(self, fs: pafs.FileSystem, path: str) -> AbstractContextManager[Reader]:
        """Open the file.

        Args:
            fs: The input's file system.
            path: The file's path on it.
        """
        ...


@dataclass(frozen=True)
class Format:
    """A format that logs may be written in: one file each beside this, and a line in `formats`.

    Attributes:
        name: Its name, for messages.
        suffix: End of the names of its files, in small letters.
        look: Number of rows, schema, number of row groups and digest of a file, put into its entry; and its view, where
            there is no `open`.
        open: Opens a file for reading by its path alone; None where each file has a view.
    """

    name: str
    suffix: str
    look: Callable[[pafs.FileSystem, LogFile], LogFile]
    open: Callable[[pafs.FileSystem, str], AbstractContextManager[Reader]] | None = None


@dataclass
class Logs:
    """All files of an input.

    Attributes:
        uri: What the user asked for, as it may be shown and stored: nothing is opened by it.
        fs: File system they lie on.
        files: Readable files, sorted by path.
        unreadable: The others.
        folders: Folders that were searched: real path -> path on the file system by which they were reached.
        pattern: What a path on the file system has to match, where a glob was asked for.
        any_name: What a path of a file whose name isn't known yet would have to match.
        passthrough: Schema of the columns that are carried along, partition keys included, under the names they get.
        partition_keys: Names of the hive keys, in order.
        source: Which version of which table they are; None for files.
    """

    uri: str
    fs: pafs.FileSystem
    files: list[LogFile]
    unreadable: list[LogFile] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    pattern: re.Pattern[str] | None = None
    any_name: re.Pattern[str] | None = None
    passthrough: pa.Schema = field(default_factory=lambda: pa.schema([]))
    partition_keys: list[str] = field(default_factory=list)
    source: SourceTable | None = None

    @property
    def size(self) -> int:
        """Bytes of the readable files."""
        return sum(file.size for file in self.files)


def by_schema(files: Iterable[LogFile]) -> dict[pa.Schema, list[LogFile]]:
    """Readable files by their schema: most share one, and what depends on it alone is checked once."""
    found: dict[pa.Schema, list[LogFile]] = {}
    for file in files:
        if file.schema is not None:
            found.setdefault(file.schema, []).append(file)
    return found


def same_place(uri: str) -> str:
    """What is the same for one file, however it was named: by `..`, through links, as `file:///`, or with a key or a query."""
    path = uri.removeprefix("file://")
    return strip_credentials(path) if "://" in path else os.path.realpath(path)


def unreadable_error(uris: Sequence[str], reason: str) -> InputError:
    """The error for files that can't be read."""
    kind = "logs" if uris[0].lower().endswith((".jsonl", ".ndjson", ".gz", ".arrow")) else "Parquet"
    names = ", ".join(uris)
    return InputError(errors.UNREADABLE_FILES, uris=uris, names=names, kind=kind, reason="".join(reason.splitlines()[:1]))
