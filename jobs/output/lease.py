"""A lease on a folder of an object store: a file that only one run can create or take over."""

import json
import time
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

from pyarrow import fs as pafs

from ragassay.jobs.storage.folder import Folder

CLAIM_SECONDS = 0.5
"""Without conditional writes: longer than a put takes. If two runs write at once, the last put wins."""

MAX_ATTEMPTS = 10
"""Attempts of a request that the store refuses temporarily or does not answer."""

CONDITION_FAILED_CODES = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404", "409", "412"})
"""Error codes of S3 if the condition of a put is not met."""


@dataclass(frozen=True)
class Claim:
    """Content of the lease file.

    Attributes:
        text: The whole text.
        version: Identifier that the store assigns to this version of the file.
    """

    text: str
    version: str

    @property
    def holder(self) -> dict[str, Any]:
        """Return host, pid and claim of the run that wrote it; empty if it is not a valid claim."""
        try:
            holder = json.loads(self.text)
        except ValueError:
            return {}
        return holder if isinstance(holder, dict) else {}


class Lease(Protocol):
    """A lease file."""

    def read(self) -> Claim | None:
        """Read the claim; None if the file does not exist."""
        ...

    def write(self, text: str, expected: Claim | None) -> Claim | None:
        """Write a claim if the file did not change.

        Args:
            text: Claim to write; it must differ from the previous one.
            expected: Expected current claim; None if the file must not exist.

        Returns:
            The new claim; None if another run wrote the file first.
        """
        ...


def open_lease(folder: Folder, name: str) -> Lease:
    """Open a lease file with conditional writes if possible: on S3, and if boto3 is installed."""
    if isinstance(folder.fs, pafs.S3FileSystem):
        try:
            import boto3  # noqa: F401
        except ImportError:
            return UnconditionalLease(folder, name)
        return ConditionalLease(folder, name)
    return UnconditionalLease(folder, name)


class UnconditionalLease:
    """A lease in a store without conditional writes, or without boto3. The last of two simultaneous writes wins.

    If two runs start within CLAIM_SECONDS of each other, both may get the lease.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        """Set the name of the file."""
        self._folder, self._name = folder, name

    def read(self) -> Claim | None:
        """See `Lease.read`."""
        text = self._folder.read(self._name)
        return None if text is None else Claim(text, text)

    def write(self, text: str, expected: Claim | None) -> Claim | None:
        """See `Lease.write`."""
        if self.read() != expected:
            return None
        self._folder.write(self._name, text)
        if expected is None or expected.holder.get("claim") != json.loads(text)["claim"]:
            time.sleep(CLAIM_SECONDS)
        current = self.read()
        return current if current is not None and current.text == text else None


class ConditionalLease:
    """A lease on S3: the store writes the object only if it does not exist, or if it is still the version that was read."""

    def __init__(self, folder: Folder, name: str) -> None:
        """Set the name of the file; no request is sent."""
        self._client = make_s3_client(folder)
        bucket, _, key = folder.path(name).partition("/")
        self._object = {"Bucket": bucket, "Key": key}

    def read(self) -> Claim | None:
        """See `Lease.read`."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            response = self._client.get_object(**self._object)
            return Claim(response["Body"].read().decode("utf-8", "replace"), response["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in CONDITION_FAILED_CODES:
                return None
            raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error

    def write(self, text: str, expected: Claim | None) -> Claim | None:
        """See `Lease.write`.

        Raises:
            NotImplementedError: The store does not support conditions.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected.version}
        try:
            response = self._client.put_object(**self._object, Body=text.encode(), **condition)
            return Claim(text, response["ETag"])
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "NotImplemented":
                raise NotImplementedError(str(error)) from error
            if code not in CONDITION_FAILED_CODES:
                raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error
        # If the response to a put is lost, the put is repeated, and refused because it succeeded.
        current = self.read()
        return current if current is not None and current.text == text else None

    def honors_conditions(self, claim: Claim) -> bool:
        """Return whether the store checks conditions; some ignore them. An existing object must not be created again."""
        return self.write(claim.text + " ", None) is None


def make_s3_client(folder: Folder) -> Any:
    """Create a boto3 client for a folder, with the credentials, region and server of its URI and the environment."""
    import boto3
    from botocore.config import Config

    address = urlsplit(folder.uri)
    query = {name: values[-1] for name, values in parse_qs(address.query).items()}
    server = query.get("endpoint_override")
    if server and "://" not in server:
        server = f"{query.get('scheme', 'https')}://{server}"
    credentials = {}
    if address.username:
        credentials = {"aws_access_key_id": unquote(address.username), "aws_secret_access_key": unquote(address.password or "")}
    # A self-hosted server seldom has a host name per bucket.
    style = {"addressing_style": "path" if server and query.get("force_virtual_addressing") != "true" else "auto"}
    settings = Config(s3=style, retries={"mode": "standard", "max_attempts": MAX_ATTEMPTS}, connect_timeout=5, read_timeout=30)
    return boto3.session.Session().client(
        "s3", region_name=folder.fs.region, endpoint_url=server, config=settings, **credentials
    )


def age_in_store(folder: Folder, name: str) -> float | None:
    """Return the seconds since a file was written; None if it does not exist.

    The age is measured by the store's clock, which may differ from the clock of this machine: a temporary file is written and
    deleted.
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
