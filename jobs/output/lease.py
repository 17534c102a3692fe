"""A file on an object store that says who holds a folder: made, and taken over, by one run alone."""

import json
import time
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from pyarrow import fs as pafs

from ragassay.jobs.storage.folder import Folder

CLAIM_SECONDS = 0.5
"""Where a store knows no conditions: longer than a put takes; of two that claim at once, the last put wins."""

TRIES = 10
"""Of a request that the store refuses for the moment, or whose answer does not come."""

REFUSED = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412"})
"""Error codes of S3 by which a put on a condition was not done."""


@dataclass(frozen=True)
class Claim:
    """What stands in the file.

    Attributes:
        text: All of it.
        version: What the store calls this state of it.
    """

    text: str
    version: str

    @property
    def holder(self) -> dict[str, Any]:
        """Who wrote it: host, pid, claim; empty where it is none of ours."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Lease(Protocol):
    """The file."""

    def read(self) -> Claim | None:
        """What stands in it; None where there is none."""
        ...

    def write(self, text: str, before: Claim | None) -> Claim | None:
        """Write it, if it stands as before.

        Args:
            text: What to write; never what stood there before.
            before: What stood there; None where there was none.

        Returns:
            What stands there now; None where another came before.
        """
        ...


def lease_of(folder: Folder, name: str) -> Lease:
    """The best that a store can do: a put on a condition, as S3 has it (and boto3 can ask for it)."""
    if isinstance(folder.fs, pafs.S3FileSystem):
        try:
            import boto3  # noqa: F401
        except ImportError:
            return LastPut(folder, name)
        return ConditionalPut(folder, name)
    return LastPut(folder, name)


class LastPut:
    """For stores that know no conditions, and without boto3: of two that write at once, the last one has written.

    Two that start within CLAIM_SECONDS of each other may both find their own.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        """Name the file."""
        self._folder, self._name = folder, name

    def read(self) -> Claim | None:
        """See `Lease.read`."""
        text = self._folder.read(self._name)
        return None if text is None else Claim(text, text)

    def write(self, text: str, before: Claim | None) -> Claim | None:
        """See `Lease.write`."""
        if self.read() != before:
            return None
        self._folder.write(self._name, text)
        if before is None or before.holder.get("claim") != json.loads(text)["claim"]:
            time.sleep(CLAIM_SECONDS)
        now = self.read()
        return now if now is not None and now.text == text else None


class ConditionalPut:
    """S3: a put that the store does only where the object does not exist, or is still the one that was read."""

    def __init__(self, folder: Folder, name: str) -> None:
        """Name the file; nothing is asked yet."""
        self._client = client(folder)
        bucket, _, key = folder.path(name).partition("/")
        self._place = {"Bucket": bucket, "Key": key}

    def read(self) -> Claim | None:
        """See `Lease.read`."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self._client.get_object(**self._place)
            return Claim(answer["Body"].read().decode("utf-8", "replace"), answer["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in REFUSED:
                return None
            raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error

    def write(self, text: str, before: Claim | None) -> Claim | None:
        """See `Lease.write`.

        Raises:
            NotImplementedError: The store refuses to look at conditions.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        condition = {"IfNoneMatch": "*"} if before is None else {"IfMatch": before.version}
        try:
            answer = self._client.put_object(**self._place, Body=text.encode(), **condition)
            return Claim(text, answer["ETag"])
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "NotImplemented":
                raise NotImplementedError(str(error)) from error
            if code not in REFUSED:
                raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error
        # A put whose answer was lost is sent again, and refused since it was done.
        now = self.read()
        return now if now is not None and now.text == text else None

    def keeps_conditions(self, mine: Claim) -> bool:
        """Whether the store looks at conditions: an object that exists must not be made once more. Some pass over them."""
        return self.write(mine.text + " ", None) is None


def client(folder: Folder) -> Any:
    """boto3's client of S3 for a folder: credentials, region and server as its URI and the environment say."""
    import boto3
    from botocore.config import Config

    address = urlsplit(folder.uri)
    query = {name: values[-1] for name, values in parse_qs(address.query).items()}
    server = query.get("endpoint_override")
    if server and "://" not in server:
        server = f"{query.get('scheme', 'https')}://{server}"
    keys = {}
    if address.username:
        keys = {"aws_access_key_id": unquote(address.username), "aws_secret_access_key": unquote(address.password or "")}
    # A server of one's own seldom has a name for every bucket.
    style = {"addressing_style": "path" if server and query.get("force_virtual_addressing") != "true" else "auto"}
    settings = Config(s3=style, retries={"mode": "standard", "max_attempts": TRIES}, connect_timeout=5, read_timeout=30)
    return boto3.session.Session().client("s3", region_name=folder.fs.region, endpoint_url=server, config=settings, **keys)


def store_age(folder: Folder, name: str) -> float | None:
    """Seconds since a file was written, by the store's own clock, which need not be this machine's; None where there is none.

    A file is written beside it, and deleted again.
    """
    info = folder.fs.get_file_info(folder.path(name))
    if info.type != pafs.FileType.File:
        return None
    probe = f"{name}-{uuid4().hex}"
    folder.write(probe, "clock")
    try:
        now = folder.fs.get_file_info(folder.path(probe)).mtime
    finally:
        folder.delete(probe)
    return float((now - info.mtime).total_seconds())
