"""Detect whether an input is a table, and of which kind."""

import re
from collections.abc import Callable

from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import Logs
from ragassay.jobs.input.tables import errors
from ragassay.jobs.input.tables.delta import LOG_FOLDER, list_delta_files
from ragassay.jobs.input.tables.iceberg import SCHEME, list_iceberg_files
from ragassay.jobs.input.tables.lance import VERSIONS_FOLDER, list_lance_files
from ragassay.jobs.input.tables.since import ListRuns
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError

_METADATA_FILE = re.compile(r"\.metadata\.json$")

_FINDERS: tuple[tuple[str, Callable[[Folder, InputConfig, ListRuns], Logs]], ...] = (
    (LOG_FOLDER, list_delta_files),
    (VERSIONS_FOLDER, list_lance_files),
)
"""Folder that identifies a kind of table, and the function that finds its files. To add a kind, add it here."""


def find_table(uri: str, source: InputConfig, runs: ListRuns) -> Logs | None:
    """Find the files of a table; None if the input is not one. See `find_logs`.

    Raises:
        InputError: The table can't be read, or table settings are given for an input that is not a table.
    """
    path = uri.partition("?")[0] if "://" in uri else uri
    if uri.startswith(SCHEME) or _METADATA_FILE.search(path):
        return list_iceberg_files(uri, source, runs)
    folder = _open_existing_folder(uri)
    for name, find in _FINDERS if folder else ():
        if folder and folder.fs.get_file_info(folder.path(name)).type == pafs.FileType.Directory:
            return find(folder, source, runs)
    if source.table_settings:
        settings = " and ".join(f"input.{name}" for name in source.table_settings)
        raise InputError(errors.NO_TABLE, uri=uri, option=settings)
    return None


def _open_existing_folder(uri: str) -> Folder | None:
    """Open the folder that an input names; None if it is a file, a glob, or missing."""
    try:
        folder = open_folder(uri)
        return folder if folder.fs.get_file_info(folder.root).type == pafs.FileType.Directory else None
    except (InputError, OSError):  # the search for files reports the fault
        return None
