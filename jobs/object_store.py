"""Object stores as they are: busy at times, and out of reach at others."""

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

TRIES = 10
"""Of a request to S3; pauses between them grow to some seconds."""

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
        """Take pyarrow's settings, but for the tries."""
        super().__init__(**settings, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=TRIES))

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A file to be read at any place; short ranges are asked for as often as long ones."""
        return pa.PythonFile(_PatientFile(lambda: pafs.S3FileSystem.open_input_file(self, path)), mode="r")

    def open_input_stream(self, path: str, compression: str | None = "detect", buffer_size: int | None = None) -> pa.NativeFile:
        """A file to be read from its beginning; likewise. It is unpacked as its name says, if nothing else is asked for."""
        file = self.open_input_file(path)
        compression = _packing(path) if compression == "detect" else compression
        plain = pa.CompressedInputStream(file, compression) if compression else file
        return pa.BufferedInputStream(plain, buffer_size) if buffer_size else plain

    def __reduce__(self) -> Any:
        """What to make it of in another process."""
        return _remade, (_settings(super()),)


class _PatientFile:
    """What `pa.PythonFile` reads of: a file of S3, whose short ranges are asked for again."""

    def __init__(self, opened: Callable[[], pa.NativeFile]) -> None:
        self._opened = opened
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
        return bytes(self._file.read(None if size < 0 else size))


def _packing(path: str) -> str | None:
    """How a file of that name is packed, as pyarrow detects it; None where it is not."""
    try:
        return str(pa.Codec.detect(path).name)
    except (TypeError, ValueError):  # what it raises of a name that tells nothing depends on its version
        return None


def patient(fs: pafs.FileSystem) -> pafs.FileSystem:
    """The same file system; of S3 one that waits longer."""
    return PatientS3(**_settings(fs)) if type(fs) is pafs.S3FileSystem else fs


def gave_way(error: BaseException) -> bool:
    """Whether an object store failed, rather than what stands in a file of it."""
    return isinstance(error, OSError) and any(name in str(error) for name in STORES)


def gave_way_message(error: BaseException, uri: str | None = None) -> str:
    """What to say of it, and of which file, where that is known."""
    where = f" at {uri}" if uri else ""
    return f"the object store gave way{where}: {str(error).splitlines()[0]}. The same command goes on where it stopped"


def _settings(fs: Any) -> dict[str, Any]:
    _, (settings,) = fs.__reduce__()
    return dict(settings)


def _remade(settings: dict[str, Any]) -> PatientS3:
    return PatientS3(**settings)
