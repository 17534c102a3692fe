"""Which table an input is, if it is one."""

import re
from collections.abc import Callable

from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import Logs
from ragassay.jobs.input.tables import errors
from ragassay.jobs.input.tables.delta import LOG, find_delta
from ragassay.jobs.input.tables.iceberg import SCHEME, find_iceberg
from ragassay.jobs.input.tables.lance import VERSIONS, find_lance
from ragassay.jobs.input.tables.since import Runs
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError

_METADATA = re.compile(r"\.metadata\.json$")

_BY_FOLDER: tuple[tuple[str, Callable[[Folder, InputConfig, Runs], Logs]], ...] = ((LOG, find_delta), (VERSIONS, find_lance))
"""Folder in a table that tells its kind, and what finds its files. A new kind is a line here."""


def find_table(uri: str, source: InputConfig, runs: Runs) -> Logs | None:
    """The files of a table, where an input is one; see `find_logs`.

    Raises:
        InputError: It can't be read, or settings for tables are given and it is none.
    """
    path = uri.partition("?")[0] if "://" in uri else uri
    if uri.startswith(SCHEME) or _METADATA.search(path):
        return find_iceberg(uri, source, runs)
    folder = _folder(uri)
    for name, find in _BY_FOLDER if folder else ():
        if folder and folder.fs.get_file_info(folder.path(name)).type == pafs.FileType.Directory:
            return find(folder, source, runs)
    if source.table_settings:
        given = " and ".join(f"input.{name}" for name in source.table_settings)
        raise InputError(errors.NO_TABLE, uri=uri, option=given)
    return None


def _folder(uri: str) -> Folder | None:
    """The folder that an input names; None where it is a file, a glob, or nothing."""
    try:
        folder = open_folder(uri)
        return folder if folder.fs.get_file_info(folder.root).type == pafs.FileType.Directory else None
    except (InputError, OSError):  # the search for files says what is wrong
        return None
