"""Files on a local disk or an object store, by path or URI; atomic writes, and the lock of an output folder."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs as pafs

from ragassay.pipeline.errors import InputError, OutputError

OUR_DATA = frozenset({"raw", "scored", "stats", "judge", "manifest.json", "evaluation.json", "frequencies.parquet"})
"""What lies in an output folder and is read again, beside names that begin with `_`. A calibration may lie there too."""


READERS = 16  # an object store answers slowly, but many at once


@dataclass(frozen=True)
class Folder:
    """A folder on some file system.

    Attributes:
        fs: pyarrow file system.
        root: Path on it, without a scheme or a trailing slash.
        uri: How the user wrote it, made absolute.
    """

    fs: pafs.FileSystem
    root: str
    uri: str

    def path(self, relative: str) -> str:
        """Path of something below this folder on its file system."""
        return f"{self.root}/{relative}" if relative else self.root

    def uri_of(self, name: str) -> str:
        """URI of a file below it; a query stays behind the name."""
        address, sign, query = self.uri.partition("?")
        return f"{address}/{name}{sign}{query}"

    def read(self, relative: str) -> str | None:
        """Text of a file; None where there is none."""
        path = self.path(relative)
        if self.fs.get_file_info(path).type != pafs.FileType.File:
            return None
        with self.fs.open_input_stream(path) as stream:
            return bytes(stream.read()).decode("utf-8")

    def write(self, relative: str, text: str) -> None:
        """Write a file whole or not at all: beside it first, then renamed (an object store's put is atomic by itself)."""
        path = self.path(relative)
        self.fs.create_dir(path.rpartition("/")[0], recursive=True)
        part = f"{path}.part" if self.is_local else path
        try:
            with self.fs.open_output_stream(part) as stream:
                stream.write(text.encode("utf-8"))
            if part != path:
                self.fs.move(part, path)
        except OSError:
            if part != path:  # an object store holds the old file still: a put that fails changes nothing
                with suppress(OSError):
                    self.fs.delete_file(part)  # what there is of it takes the room that is missing
            raise

    def list(self, relative: str, suffix: str) -> list[pafs.FileInfo]:
        """Files below a sub-folder whose name ends so, hidden ones and those in `_` folders aside; sorted by path."""
        selector = pafs.FileSelector(self.path(relative), recursive=True, allow_not_found=True)
        base = len(self.path(relative)) + 1
        return sorted(
            (
                info
                for info in self.fs.get_file_info(selector)
                if info.type == pafs.FileType.File and info.path.endswith(suffix) and not is_hidden(info.path[base:])
            ),
            key=lambda info: info.path,
        )

    def delete(self, relative: str) -> None:
        """Delete a file or a folder below this one; nothing happens where there is none."""
        path = self.path(relative)
        kind = self.fs.get_file_info(path).type
        if kind == pafs.FileType.Directory:
            self.fs.delete_dir(path)
        elif kind == pafs.FileType.File:
            self.fs.delete_file(path)

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine's own file system."""
        return isinstance(self.fs, pafs.LocalFileSystem)


def open_folder(uri: str) -> Folder:
    """Open a folder by path or URI, whether or not it exists.

    Raises:
        InputError: The URI's scheme or bucket is unknown.
    """
    if "://" not in uri:
        absolute = Path(uri).expanduser().absolute()
        path = os.path.realpath(absolute) if ".." in absolute.parts else str(absolute)
        return Folder(pafs.LocalFileSystem(), path, path)
    try:
        fs, root = pafs.FileSystem.from_uri(uri)
    except (ValueError, OSError) as error:
        raise InputError(f"{uri!r} is no path or URI that can be opened: {error}") from error
    return Folder(fs, root.rstrip("/"), uri.rstrip("/"))


def file_of(folder: Folder, name: str) -> Folder:
    """A file of a folder, as `refuse_inside` takes it."""
    return Folder(folder.fs, folder.path(name), folder.uri_of(name))


def open_file(uri: str) -> tuple[Folder, str]:
    """The folder of a file by path or URI, and the file's name in it; see `open_folder`.

    Raises:
        InputError: The URI's scheme or bucket is unknown, or it names no file.
    """
    whole = open_folder(uri)
    root, _, name = whole.root.rpartition("/")
    if not name or uri.endswith("/"):
        raise InputError(f"{uri!r} names no file")
    address, sign, query = whole.uri.partition("?")
    return Folder(whole.fs, root or "/", address.rpartition("/")[0] + sign + query), name


def refuse_inside(output: Folder, target: Folder, dest: str) -> None:
    """Refuse a file that would lie among an output folder's own data, or in their place.

    Args:
        output: The output folder.
        target: The file.
        dest: As the user named it.

    Raises:
        OutputError: It would.
    """
    file = real_path(target.fs, target.root)
    inside = file.removeprefix(f"{real_path(output.fs, output.root)}/")
    top = inside.partition("/")[0]
    ours = top in OUR_DATA or top.startswith("_")
    if inside != file and target.fs.type_name == output.fs.type_name and ours:
        raise OutputError(f"{dest} lies among the output folder's own data, which it would spoil: name a file elsewhere")


def is_hidden(path: str) -> bool:
    """Whether any part of a relative path begins with `_` or a dot."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def real_path(fs: pafs.FileSystem, path: str) -> str:
    """A path without links, on this machine's own disks; elsewhere as it is."""
    return os.path.realpath(path) if isinstance(fs, pafs.LocalFileSystem) else path
