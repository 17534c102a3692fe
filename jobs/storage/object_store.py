"""Object stores as they are: busy at times, and out of reach at others."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs import errors
from ragassay.jobs.progress.waits import track_wait
from ragassay.pipeline.errors import InputError

TRIES = 10
"""Of a request to S3; pauses between them grow to some seconds."""

CONNECT_SECONDS = 5.0
"""Wait for a connection to S3."""

SILENT_SECONDS = 10.0
"""Wait for the next byte of an answer; pyarrow's own 3 are too few for a store that is busy."""

STORES = ("AWS Error", "google::cloud::Status", "Azure Error")
"""What pyarrow's errors of object stores have in their text: it has no class for them."""

OF_THE_FILE = ("NO_SUCH_KEY", "ACCESS_DENIED", "NOT_FOUND", "PERMISSION_DENIED")
"""Errors of a store that may well be one file's alone."""

NO_ROOM = "Failed to flush response stream"
"""What the AWS SDK makes of a 500 or a 503 whose body is longer than the range that was asked for; it doesn't ask again."""

FIRST_PAUSE = 0.05
"""Seconds before such a range is asked for again; then twice as long each time."""


class PatientS3(pafs.S3FileSystem):  # type: ignore[misc]
    """S3, asked TRIES times: in Ray's workers too, to which pyarrow's own goes with 3, however it was made."""

    def __init__(self, **settings: Any) -> None:
        """Take pyarrow's settings, but for the tries; its own waits only where settings name none."""
        for name, seconds in (("connect_timeout", CONNECT_SECONDS), ("request_timeout", SILENT_SECONDS)):
            given = settings.get(name)
            settings[name] = given if given is not None and given > 0 else seconds
        super().__init__(**settings, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=TRIES))
        self._server = f"object store {server_of(super())}"

    def get_file_info(self, paths_or_selector: Any) -> Any:
        """As pyarrow's; progress shows a long wait."""
        with self._waiting():
            return super().get_file_info(paths_or_selector)

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        """As pyarrow's; progress shows a long wait."""
        with self._waiting():
            super().create_dir(path, recursive=recursive)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file to be read at any place; short ranges are asked for as often as long ones."""

        def opened() -> pa.NativeFile:
            with self._waiting():
                return pafs.S3FileSystem.open_input_file(self, path)

        return pa.PythonFile(_PatientFile(opened, self._waiting), mode="r")

    def open_input_stream(self, path: str, compression: str | None = "detect", buffer_size: int | None = None) -> pa.NativeFile:
        """A file to be read from its beginning; likewise. It is unpacked as its name says, if nothing else is asked for."""
        file = self.open_input_file(path)
        compression = _packing(path) if compression == "detect" else compression
        plain = pa.CompressedInputStream(file, compression) if compression else file
        return pa.BufferedInputStream(plain, buffer_size) if buffer_size else plain

    def _waiting(self) -> AbstractContextManager[None]:
        return track_wait(self._server)

    def __reduce__(self) -> Any:
        """What to make it of in another process."""
        return _remade, (settings_of(super()),)


class _PatientFile:
    """What `pa.PythonFile` reads of: a file of S3, whose short ranges are asked for again."""

    def __init__(self, opened: Callable[[], pa.NativeFile], waiting: Callable[[], AbstractContextManager[None]]) -> None:
        self._opened = opened
        self._waiting = waiting
        self._file = opened()

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._file.seek(place, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        place = self._file.tell()
        for attempt in range(TRIES - 1):
            try:
                return self._read(size)
            except OSError as error:
                if NO_ROOM not in str(error):
                    raise
            time.sleep(FIRST_PAUSE * 2**attempt)
            self._file = self._opened()  # the store says so if the file is no more there, or no more ours to read
            self._file.seek(place)
        return self._read(size)

    def _read(self, size: int) -> bytes:
        with self._waiting():
            return bytes(self._file.read(None if size < 0 else size))


def _packing(path: str) -> str | None:
    """How a file of that name is packed, as pyarrow detects it; None where it is not."""
    try:
        return str(pa.Codec.detect(path).name)
    except (TypeError, ValueError):  # what it raises of a name that tells nothing depends on its version
        return None


def patient(fs: pafs.FileSystem) -> pafs.FileSystem:
    """The same file system; of S3 one that waits longer."""
    return PatientS3(**settings_of(fs)) if type(fs) is pafs.S3FileSystem else fs


def gave_way(error: BaseException) -> bool:
    """Whether an object store failed, rather than what stands in a file of it."""
    return isinstance(error, OSError) and any(name in str(error) for name in STORES)


def gave_way_error(error: BaseException, uri: str | None = None) -> InputError:
    """The error for it, and for the file, where that is known."""
    return InputError(errors.GAVE_WAY, uri=uri, where=f" at {uri}" if uri else "", reason=str(error).splitlines()[0])


def server_of(fs: Any) -> str:
    """The server of a store of S3, Google or Azure, for messages: without user and password."""
    settings = settings_of(fs)
    named = settings.get("endpoint_override") or settings.get("blob_storage_authority") or ""
    if fs.type_name == "s3":
        named = named or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        named = named or f"s3.{fs.region}.amazonaws.com"
    elif named.startswith("."):
        named = settings["account_name"] + named
    server = (named or "storage.googleapis.com").rpartition("://")[2].partition("/")[0].rpartition("@")[2]
    return "".join(c for c in server if c.isprintable())


def settings_of(fs: Any) -> dict[str, Any]:
    """What a file system of pyarrow was made with."""
    _, (settings,) = fs.__reduce__()
    return dict(settings)


def _remade(settings: dict[str, Any]) -> PatientS3:
    return PatientS3(**settings)
