"""List every file below a folder once."""

import os
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import fs as pafs

from ragassay.jobs.input import errors
from ragassay.jobs.storage.folder import is_hidden
from ragassay.pipeline.errors import InputError


@dataclass
class FolderListing:
    """The files below a folder. Files and folders whose name begins with `_` or a dot are skipped.

    Attributes:
        files: Files, sorted by path.
        folders: Real path -> path by which the folder was reached.
        tables: Folders that contain a Delta or Iceberg table, sorted.
    """

    files: list[pafs.FileInfo]
    folders: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)


_DELTA_LOG = "/_delta_log/"
_ICEBERG_METADATA = re.compile(r"(.*)/metadata/[^/]+\.metadata\.json")


def walk_folder(fs: pafs.FileSystem, root: str) -> FolderListing:
    """List all files below a folder.

    On a local disk, links are followed. A file or folder that can be reached by several paths counts once, under its own path
    if it has one below the root. A link to a parent folder is not followed.

    Args:
        fs: File system.
        root: Folder to list.

    Raises:
        OSError: A folder can't be read.
        InputError: A name is not valid UTF-8.
    """
    if isinstance(fs, pafs.LocalFileSystem):
        paths, folders = _walk_disk(root)
        deltas = [folder for folder in folders.values() if Path(f"{folder}{_DELTA_LOG}").is_dir()]
        return FolderListing(fs.get_file_info(paths), folders, _merge_tables(paths, deltas))
    infos = fs.get_file_info(pafs.FileSelector(root, recursive=True))
    visible = (info for info in infos if info.type == pafs.FileType.File and not is_hidden(info.path[len(root) + 1 :]))
    files = sorted(visible, key=lambda info: info.path)
    deltas = [info.path.partition(_DELTA_LOG)[0] for info in infos if _DELTA_LOG in info.path]
    deltas = [folder for folder in deltas if not is_hidden(folder[len(root) + 1 :])]
    return FolderListing(files, {root: root}, _merge_tables([info.path for info in files], deltas))


def _merge_tables(files: Iterable[str], deltas: Iterable[str]) -> list[str]:
    iceberg = (match[1] for match in map(_ICEBERG_METADATA.fullmatch, files) if match)
    return sorted({*deltas, *iceberg})


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InputError(errors.NAME_NOT_UTF8, path=path) from error


def _walk_disk(root: str) -> tuple[list[str], dict[str, str]]:
    real_root = os.path.realpath(root)
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    folders_to_read, links = deque([root]), deque[str]()
    while folders_to_read or links:
        if not folders_to_read:  # links last: what has its own path is already listed under it
            path = links.popleft()
            real = os.path.realpath(path)
            if not Path(real).is_dir():
                files.setdefault(real, path)  # a dead link is reported when it is read
            elif not f"{real_root}/".startswith(f"{real.rstrip('/')}/"):
                folders_to_read.append(path)
            continue
        folder = folders_to_read.popleft()
        real = os.path.realpath(folder)
        if real in folders:
            continue
        folders[real] = folder
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if is_hidden(entry.name):
                    continue
                path = f"{folder.rstrip('/')}/{entry.name}"
                _check_name(path)
                if entry.is_symlink():
                    links.append(path)
                elif entry.is_dir():
                    folders_to_read.append(path)
                elif entry.is_file():
                    files.setdefault(f"{real}/{entry.name}", path)
    return sorted(files.values()), folders
