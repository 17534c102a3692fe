"""Record what a tool has been sent, in OUTPUT/publish: one file per tool, address, account and score name."""

import hashlib
import json
import time

from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Connection
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.published import PublishRecord

FOLDER = "publish"
LOCK = "_lock-publish"
"""Lock while verdicts are sent; runs do not wait for it."""

WRITE_INTERVAL_SECONDS = 5.0
"""Seconds between writes. A killed run sends again what it sent since the last write; the tool recognizes it."""


class PublishState:
    """What has been sent, on disk.

    Attributes:
        published: The record.
        file_name: Name of its file in OUTPUT.
    """

    def __init__(self, output: Folder, target: str, connection: Connection, score_name: str) -> None:
        """Read the record, or create it.

        Raises:
            OutputError: The record can't be read.
        """
        account = json.dumps([connection.url, connection.account, score_name])
        self.file_name = f"{FOLDER}/{target}-{hashlib.blake2b(account.encode(), digest_size=4).hexdigest()}.json"
        self._output, self._written = output, time.monotonic()
        text = output.read(self.file_name)
        try:
            self.published = (
                PublishRecord(target, connection.url, score_name) if text is None else PublishRecord.from_json(text)
            )
        except ValueError as error:
            raise OutputError(errors.UNREADABLE_STATE, path=output.uri_of(self.file_name), reason=error) from error

    def write(self, *, force: bool) -> None:
        """Write the record atomically: now if `force` is true, otherwise at most every WRITE_INTERVAL_SECONDS."""
        if force or time.monotonic() - self._written >= WRITE_INTERVAL_SECONDS:
            self._output.write(self.file_name, self.published.to_json())
            self._written = time.monotonic()
