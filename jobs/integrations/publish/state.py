"""What a tool has been sent, in OUTPUT/publish: a file for every tool, address, account and name."""

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
"""Held while verdicts are sent: runs need not wait for it."""

EVERY_SECONDS = 5.0
"""A run that is killed sends again what it sent since it last wrote; the tool sees it as the same."""


class State:
    """What has been sent, written down as it goes.

    Attributes:
        published: What.
        name: Of the file, in OUTPUT.
    """

    def __init__(self, output: Folder, target: str, connection: Connection, name: str) -> None:
        """Read it, or begin it.

        Raises:
            OutputError: It can't be read.
        """
        whose = json.dumps([connection.url, connection.account, name])
        self.name = f"{FOLDER}/{target}-{hashlib.blake2b(whose.encode(), digest_size=4).hexdigest()}.json"
        self._output, self._written = output, time.monotonic()
        text = output.read(self.name)
        try:
            self.published = PublishRecord(target, connection.url, name) if text is None else PublishRecord.from_json(text)
        except ValueError as error:
            raise OutputError(errors.UNREADABLE_STATE, path=output.uri_of(self.name), reason=error) from error

    def write(self, *, now: bool) -> None:
        """Write it, whole or not at all: now, or if it was not for some seconds."""
        if now or time.monotonic() - self._written >= EVERY_SECONDS:
            self._output.write(self.name, self.published.to_json())
            self._written = time.monotonic()
