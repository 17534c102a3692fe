"""The formats that logs may be written in, and what is read of a file in whichever it is."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input.arrow import ARROW
from ragassay.jobs.input.files import Format, LogFile, Reader
from ragassay.jobs.input.jsonl import JSON_LINES
from ragassay.jobs.input.parquet import PARQUET, open_parquet
from ragassay.jobs.storage.folder import READERS
from ragassay.jobs.storage.object_store import OF_THE_FILE, gave_way, gave_way_error

FORMATS = (PARQUET, *JSON_LINES, ARROW)
"""A new one is a line here."""


def format_of(path: str) -> Format | None:
    """The format of a file, by the end of its name; None where it is none of ours."""
    return next((kind for kind in FORMATS if path.lower().endswith(kind.suffix)), None)


def open_log(fs: pafs.FileSystem, file: LogFile) -> AbstractContextManager[Reader]:
    """Open a file of logs, in whichever format it is."""
    if file.view is not None:
        return file.view.open(fs, file.fs_path)
    return (_format_of(file.fs_path).open or open_parquet)(fs, file.fs_path)


def parquet_file(path: str) -> LogFile:
    """A Parquet file of ours, to be opened as logs are."""
    return LogFile(path, path, path, 0, ())


def look_at(fs: pafs.FileSystem, files: Sequence[LogFile]) -> list[LogFile]:
    """Files with how many rows they have and which columns, many at once; or with why they can't be read."""
    schemas: dict[pa.Schema, pa.Schema] = {}  # most files share one, and need to hold it but once
    with ThreadPoolExecutor(READERS) as readers:
        found = readers.map(partial(_look_at, fs), files)
        return [f if f.schema is None else replace(f, schema=schemas.setdefault(f.schema, f.schema)) for f in found]


def group_sizes(fs: pafs.FileSystem, file: LogFile) -> list[int]:
    """Rows of each row group of a file."""
    with open_log(fs, file) as log:
        return log.sizes


def _format_of(path: str) -> Format:
    """The format of a file; one of any other name, that the user gave itself, is taken for Parquet."""
    return format_of(path) or PARQUET


def _look_at(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    try:
        found = _format_of(file.fs_path).look(fs, file)
        list(found.schema.names if found.schema is not None else ())  # a name that is no UTF-8 fails here
        return found
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if gave_way(error) and not any(code in str(error) for code in OF_THE_FILE):
            raise gave_way_error(error, file.uri) from error
        return replace(file, error=(str(error).splitlines() or [type(error).__name__])[0])
