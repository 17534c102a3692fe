"""Check that an object store responds, before the first request: report an error soon, and show what the command waits for."""

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
from ragassay.jobs.storage.store_retries import CONNECT_SECONDS, file_system_options, store_host
from ragassay.pipeline.errors import InputError

GIVE_UP_SECONDS = 25.0
"""Seconds after the first request, after which no other request is sent."""

ANSWER_SECONDS = 20.0
"""Timeout of one request."""

MAX_WAIT_SECONDS = 60.0
"""Maximum wait, for clients without timeouts."""

_NO_CONTACT = re.compile(
    r"curlCode: (5|6|7|28|35|60|77),|CURL error \[(5|6|7|28|35|60|77)\]|"
    r"Fail to get a new connection|Could not (resolve|connect)"
)
"""Errors of clients when a server can't be reached or does not respond. A server that responds with an error is reachable."""

_PAUSES = (1.0, 2.0, 4.0)
_RECHECK_SECONDS = 60.0
_reachable: set[tuple[str, str]] = set()
_unreachable: dict[tuple[str, str], tuple[float, str]] = {}


def check_reachable(fs: pafs.FileSystem, root: str, address: str) -> None:
    """Check that an object store responds, once per process and store. Other file systems are not checked.

    Args:
        fs: File system.
        root: Path on it.
        address: Address without secrets, for messages.

    Raises:
        InputError: The store does not respond.
    """
    if not isinstance(fs, pafs.S3FileSystem | pafs.GcsFileSystem | pafs.AzureFileSystem):
        return
    bucket = root.partition("/")[0]
    host = store_host(fs)
    store = (f"{fs.type_name}://{bucket}", host)
    if store in _reachable or not bucket:
        return
    checked_at, reason = _unreachable.get(store, (-_RECHECK_SECONDS, ""))
    if time.monotonic() - checked_at > _RECHECK_SECONDS:
        reason = _run_with_shown_wait(host, lambda: _find_contact_fault(_without_retries(fs), bucket))
        _unreachable[store] = time.monotonic(), reason
    if reason:
        raise InputError(errors.NO_ANSWER, address=address, host=host, reason=reason)
    _reachable.add(store)


def _run_with_shown_wait(host: str, work: Callable[[], str]) -> str:
    """Run a function in a thread for at most MAX_WAIT_SECONDS, show the wait, and return the result."""
    ended, result = Event(), [f"no response within {MAX_WAIT_SECONDS:.0f} s"]

    def run() -> None:
        try:
            result[0] = work()
        finally:
            ended.set()

    with track_wait(f"object store {host}"), show_waits():
        Thread(target=run, daemon=True, name="contact").start()
        ended.wait(MAX_WAIT_SECONDS)
    return result[0]


def _find_contact_fault(fs: pafs.FileSystem, bucket: str) -> str:
    """Return why a store can't be reached; empty if it responds, even with an error."""
    start = time.monotonic()
    for attempt in range(100):
        try:
            fs.get_file_info(bucket)
        except OSError as error:
            if not _NO_CONTACT.search(str(error)):
                return ""
            reason = _extract_reason(str(error))
        else:
            return ""
        if time.monotonic() - start >= GIVE_UP_SECONDS:
            break
        time.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
    return f"{reason} ({attempt + 1} attempts in {time.monotonic() - start:.0f} s)"


def _extract_reason(error: str) -> str:
    """Extract the reason from the text of an error."""
    details = error.partition("Details: ")[2] or error.partition("CURL error ")[2].partition("=")[2] or error
    return hide_secrets(" ".join(details.partition(" error_info=")[0].split()))[:200].rstrip(".")


def _without_retries(fs: Any) -> pafs.FileSystem:
    """Return the same store with one attempt per request."""
    settings = file_system_options(fs)
    if isinstance(fs, pafs.S3FileSystem):
        limits = {"connect_timeout": CONNECT_SECONDS, "request_timeout": ANSWER_SECONDS}
        return pafs.S3FileSystem(**settings | limits, retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1))
    if isinstance(fs, pafs.GcsFileSystem):
        return pafs.GcsFileSystem(**settings | {"retry_time_limit": timedelta(seconds=ANSWER_SECONDS)})
    return fs
