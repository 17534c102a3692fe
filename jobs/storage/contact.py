"""The first request to an object store: one that does not answer is an error soon, and progress says what is waited for."""

import re
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any

from pyarrow import fs as pafs

from ragassay.jobs import errors
from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.progress.show import show_waits
from ragassay.jobs.progress.waits import track_wait
from ragassay.jobs.storage.object_store import CONNECT_SECONDS, server_of, settings_of
from ragassay.pipeline.errors import InputError

GIVE_UP_SECONDS = 25.0
"""From the first request on; then none is sent any more."""

ANSWER_SECONDS = 20.0
"""Wait for an answer to one request."""

MOST_SECONDS = 60.0
"""For clients that have no limits of their own."""

_SILENT = re.compile(
    r"curlCode: (5|6|7|28|35|60|77),|CURL error \[(5|6|7|28|35|60|77)\]|"
    r"Fail to get a new connection|Could not (resolve|connect)"
)
"""What clients say of a server that can't be reached, or does not answer. What answers with an error is there."""

_PAUSES = (1.0, 2.0, 4.0)
_KNOWN_SECONDS = 60.0
_reached: set[tuple[str, str]] = set()
_silent: dict[tuple[str, str], tuple[float, str]] = {}


def reach(fs: pafs.FileSystem, root: str, address: str) -> None:
    """Make sure that an object store answers, once a process and store; of other file systems, nothing is asked.

    Args:
        fs: File system.
        root: Path on it.
        address: Where it is, for messages: without secrets.

    Raises:
        InputError: It does not answer.
    """
    if not isinstance(fs, pafs.S3FileSystem | pafs.GcsFileSystem | pafs.AzureFileSystem):
        return
    bucket = root.partition("/")[0]
    host = server_of(fs)
    store = (f"{fs.type_name}://{bucket}", host)
    if store in _reached or not bucket:
        return
    when, reason = _silent.get(store, (-_KNOWN_SECONDS, ""))
    if time.monotonic() - when > _KNOWN_SECONDS:
        reason = _shown_wait(host, lambda: _fault_of_contact(_impatient(fs), bucket))
        _silent[store] = time.monotonic(), reason
    if reason:
        raise InputError(errors.NO_ANSWER, address=address, host=host, reason=reason)
    _reached.add(store)


def _shown_wait(host: str, work: Callable[[], str]) -> str:
    """What work says, done in a thread, for at most MOST_SECONDS; the wait is shown."""
    ended, said = Event(), [f"no answer within {MOST_SECONDS:.0f} s"]

    def run() -> None:
        try:
            said[0] = work()
        finally:
            ended.set()

    with track_wait(f"object store {host}"), show_waits():
        Thread(target=run, daemon=True, name="contact").start()
        ended.wait(MOST_SECONDS)
    return said[0]


def _fault_of_contact(fs: pafs.FileSystem, bucket: str) -> str:
    """Why a store can't be reached; empty where it answers, whatever it says."""
    start = time.monotonic()
    for tries in range(100):
        try:
            fs.get_file_info(bucket)
        except OSError as error:
            if not _SILENT.search(str(error)):
                return ""
            reason = _reason(str(error))
        else:
            return ""
        if time.monotonic() - start >= GIVE_UP_SECONDS:
            break
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
    return f"{reason} ({tries + 1} tries in {time.monotonic() - start:.0f} s)"


def _reason(error: str) -> str:
    """The part of an error that says why."""
    details = error.partition("Details: ")[2] or error.partition("CURL error ")[2].partition("=")[2] or error
    return hide_secrets(" ".join(details.partition(" error_info=")[0].split()))[:200].rstrip(".")


def _impatient(fs: Any) -> pafs.FileSystem:
    """The same store, asked once a call."""
    settings = settings_of(fs)
    if isinstance(fs, pafs.S3FileSystem):
        limits = {"connect_timeout": CONNECT_SECONDS, "request_timeout": ANSWER_SECONDS}
        return pafs.S3FileSystem(**settings | limits, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1))
    if isinstance(fs, pafs.GcsFileSystem):
        return pafs.GcsFileSystem(**settings | {"retry_time_limit": timedelta(seconds=ANSWER_SECONDS)})
    return fs
