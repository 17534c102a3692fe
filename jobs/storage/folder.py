"""Files on a local disk or an object store, by path or URI; atomic writes."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs import errors
from ragassay.jobs.display.address import is_ambiguous_uri, quote_path, strip_credentials
from ragassay.jobs.storage.contact import reach
from ragassay.jobs.storage.object_store import patient
from ragassay.pipeline.errors import InputError, OutputError

OUR_DATA = frozenset(
    {
        "raw", "scored", "stats", "explanations", "escalated", "judge", "manifest.json", "evaluation.json",
        "evaluation_explanations.json", "frequencies.parquet", "estimate.json", "publish",
    }
)  # fmt: skip
"""What lies in an output folder and is read again, beside names that begin with `_`. A calibration may lie there too."""


WRITE_BUFFER = 1 << 20  # bytes

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

    @property
    def address(self) -> str:
        """Where it is, as it may be shown and stored: without user, password and query. What is opened again goes by `uri`."""
        return strip_credentials(self.uri)

    def format_address(self, name: str) -> str:
        """Where a file below it is, as it may be shown and stored."""
        return f"{self.address}/{quote_path(name) if '://' in self.uri else name}"

    def uri_of(self, name: str) -> str:
        """URI of a file below it; a query stays behind the name."""
        address, sign, query = self.uri.partition("?")
        return f"{address}/{name}{sign}{query}"

    @property
    def itself(self) -> "Folder":
        """The folder, into which a file is written at once."""
        return self

    def read(self, relative: str) -> str | None:
        """Text of a file; None where there is none."""
        path = self.path(relative)
        if self.fs.get_file_info(path).type != pafs.FileType.File:
            return None
        with self.fs.open_input_stream(path) as stream:
            return bytes(stream.read()).decode("utf-8")

    def write(self, relative: str, text: str) -> None:
        """Write a text file whole or not at all; an object store's put of so little is atomic by itself."""
        path = self.path(relative)
        self.fs.create_dir(path.rpartition("/")[0], recursive=True)
        with writing(self.fs, path) if self.is_local else self.fs.open_output_stream(path) as stream:
            stream.write(text.encode("utf-8"))

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


@contextmanager
def writing(fs: pafs.FileSystem, path: str, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """A stream into a file that is written whole or not at all; what stood there is replaced when the block has ended well.

    On a disk it is written beside its place, and renamed. For an object store it is written to this machine's disk first (a
    file without a name, which ends with the process), and put when it is whole: what is streamed there becomes a file when the
    stream ends, however it ends.

    Args:
        fs: File system.
        path: Path on it; folders are made.
        compression: Such as gzip; None writes what is given.
    """
    fs.create_dir(path.rpartition("/")[0], recursive=True)
    if not isinstance(fs, pafs.LocalFileSystem):
        with tempfile.TemporaryFile() as whole:
            here = f"/proc/self/fd/{whole.fileno()}"
            with pafs.LocalFileSystem().open_output_stream(here, compression, WRITE_BUFFER) as stream:
                yield stream
            with fs.open_output_stream(path, compression=None) as put:  # it would pack again what is called .gz
                shutil.copyfileobj(whole, put, WRITE_BUFFER)
        return
    part = f"{path}.{uuid4().hex[:8]}.part"  # two may write the same
    try:
        with fs.open_output_stream(part, compression, WRITE_BUFFER) as stream:
            yield stream
        fs.move(part, path)
    except BaseException:  # the first error is the one to tell of
        with suppress(OSError):
            fs.delete_file(part)  # what there is of it takes the room that is missing
        raise


def read_table(
    fs: pafs.FileSystem, path: str, columns: Sequence[str] | None = None, schema: pa.Schema | None = None
) -> pa.Table:
    """A whole Parquet file, or a folder of them. A file is opened here: pyarrow would go past what asks a store again.

    Args:
        fs: File system.
        path: On it.
        columns: Those to read; all by default.
        schema: To read it with; its own by default.

    Raises:
        OSError, pa.ArrowException: It can't be read.
    """
    try:
        file = fs.open_input_file(path)
    except OSError:
        if fs.get_file_info(path).type != pafs.FileType.Directory:
            raise
        return pq.read_table(path, columns=columns, filesystem=fs, schema=schema, partitioning=None)
    with file:
        return pq.read_table(file, columns=columns, schema=schema, partitioning=None)


def open_folder(uri: str) -> Folder:
    """Open a folder by path or URI, whether or not it exists.

    Raises:
        InputError: The URI's scheme or bucket is unknown, it can be read in two ways, or the object store does not answer.
    """
    if "://" not in uri:
        absolute = Path(uri).expanduser().absolute()
        path = os.path.realpath(absolute) if ".." in absolute.parts else str(absolute)
        return Folder(pafs.LocalFileSystem(), path, path)
    if is_ambiguous_uri(uri):
        raise InputError(errors.AMBIGUOUS, uri=uri)
    try:
        fs, root = pafs.FileSystem.from_uri(uri)
        fs = patient(fs)
    except (ValueError, OSError) as error:
        raise InputError(errors.NOT_OPENABLE, uri=uri, reason=error) from None
    reach(fs, root, strip_credentials(uri))
    return Folder(fs, root.rstrip("/"), uri.partition("#")[0].rstrip("/"))  # what is behind a # opened nothing


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
        raise InputError(errors.NO_FILE, uri=uri)
    address, sign, query = whole.uri.partition("?")
    return Folder(whole.fs, root or "/", address.rpartition("/")[0] + sign + query), name


def read_named(uri: str, required: Iterable[str], hint: str = "") -> pa.Table:
    """A Parquet file that the user names.

    Args:
        uri: Its path or URI.
        required: Columns that it must have.
        hint: What the user may have to know of it, in brackets.

    Raises:
        InputError: It can't be read, or lacks a column.
    """
    where, name = open_file(uri)
    try:
        table = read_table(where.fs, where.path(name))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(errors.NO_PARQUET, path=uri, hint=hint, reason=error) from error
    known = table.column_names
    if missing := sorted(set(required) - set(known)):
        raise InputError(errors.LACKS_COLUMNS, path=uri, columns=", ".join(missing), hint=hint, known=", ".join(known))
    return table


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
        raise OutputError(errors.FILE_INSIDE, path=dest)


def is_hidden(path: str) -> bool:
    """Whether any part of a relative path begins with `_` or a dot."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def real_path(fs: pafs.FileSystem, path: str) -> str:
    """A path without links, on this machine's own disks; elsewhere as it is."""
    return os.path.realpath(path) if isinstance(fs, pafs.LocalFileSystem) else path
