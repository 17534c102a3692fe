"""Every file below a folder, once."""

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
class Found:
    """What lies below a folder; hidden files, and all below folders that begin with `_` or a dot, are passed over.

    Attributes:
        files: Sorted by path.
        folders: Real path -> path by which it was reached.
        tables: Folders among them that hold a Delta or Iceberg table, sorted.
    """

    files: list[pafs.FileInfo]
    folders: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)


_DELTA = "/_delta_log/"
_ICEBERG = re.compile(r"(.*)/metadata/[^/]+\.metadata\.json")


def walk(fs: pafs.FileSystem, root: str) -> Found:
    """Find all files below a folder.

    On a local disk links are followed, but a file or folder that is reached by its own path as well, or by several links,
    counts once, under its own path if it has one; a link to a folder above it ends there.

    Args:
        fs: File system.
        root: The folder.

    Raises:
        OSError: A folder can't be read.
        InputError: A name is no UTF-8.
    """
    if isinstance(fs, pafs.LocalFileSystem):
        paths, folders = _walk_disk(root)
        deltas = [folder for folder in folders.values() if Path(f"{folder}{_DELTA}").is_dir()]
        return Found(fs.get_file_info(paths), folders, _tables(paths, deltas))
    infos = fs.get_file_info(pafs.FileSelector(root, recursive=True))
    wanted = (info for info in infos if info.type == pafs.FileType.File and not is_hidden(info.path[len(root) + 1 :]))
    files = sorted(wanted, key=lambda info: info.path)
    deltas = [info.path.partition(_DELTA)[0] for info in infos if _DELTA in info.path]
    deltas = [folder for folder in deltas if not is_hidden(folder[len(root) + 1 :])]
    return Found(files, {root: root}, _tables([info.path for info in files], deltas))


def _tables(files: Iterable[str], deltas: Iterable[str]) -> list[str]:
    iceberg = (match[1] for match in map(_ICEBERG.fullmatch, files) if match)
    return sorted({*deltas, *iceberg})


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InputError(errors.NAME_NO_UTF8, path=path) from error


def _walk_disk(root: str) -> tuple[list[str], dict[str, str]]:
    own = os.path.realpath(root)
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    ready, links = deque([root]), deque[str]()
    while ready or links:
        if not ready:  # only now: whatever has a path of its own is known by it
            path = links.popleft()
            real = os.path.realpath(path)
            if not Path(real).is_dir():
                files.setdefault(real, path)  # one that leads nowhere is named when it is read
            elif not f"{own}/".startswith(f"{real.rstrip('/')}/"):
                ready.append(path)
            continue
        folder = ready.popleft()
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
                    ready.append(path)
                elif entry.is_file():
                    files.setdefault(f"{real}/{entry.name}", path)
    return sorted(files.values()), folders
