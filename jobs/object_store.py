"""Object stores as they are: busy at times, and out of reach at others."""

from typing import Any

from pyarrow import fs as pafs

TRIES = 10
"""Of a request to S3; pauses between them grow to some seconds."""

STORES = ("AWS Error", "google::cloud::Status", "Azure Error")
"""What pyarrow's errors of object stores have in their text: it has no class for them."""

OF_THE_FILE = ("NO_SUCH_KEY", "ACCESS_DENIED", "NOT_FOUND", "PERMISSION_DENIED")
"""Errors of a store that may well be one file's alone."""


class PatientS3(pafs.S3FileSystem):  # type: ignore[misc]
    """S3, asked TRIES times: in Ray's workers too, to which pyarrow's own goes with 3, however it was made."""

    def __init__(self, **settings: Any) -> None:
        """Take pyarrow's settings, but for the tries."""
        super().__init__(**settings, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=TRIES))

    def __reduce__(self) -> Any:
        """What to make it of in another process."""
        return _remade, (_settings(super()),)


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
