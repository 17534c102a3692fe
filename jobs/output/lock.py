"""Lock an output folder: a command that writes its data holds a lock, and other commands wait for it.

`LOCK` is for commands that write the manifest or `scored/`. `explain`, `publish` and `table` write other data, and each has its
own lock. Commands that only read take no lock: see `jobs.output.snapshot`.
"""

import json
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from rich.console import Console

from ragassay.jobs.output import errors
from ragassay.jobs.output.lease import (
    CLAIM_SECONDS,
    Claim,
    ConditionalLease,
    Lease,
    UnconditionalLease,
    age_in_store,
    open_lease,
)
from ragassay.jobs.progress.task import waiting
from ragassay.jobs.runtime.endings import handle_sigterm, is_disk_full, make_disk_full_error, restore_sigterm, walk_causes
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError, OutputInUse

LOCK = "_lock"
HOLDER_SUFFIX = "-holder"
"""On a local disk: suffix of the file that states who holds the lock."""

POLL_SECONDS = 1.0
POLL_STORE_SECONDS = 5.0
"""Interval between attempts of a waiting command in an object store; POLL_SECONDS is for a local disk."""

RENEW_SECONDS = 60.0

LEASE_SECONDS = 600.0

STORE_ERRORS = (OSError, RuntimeError)
"""Errors of a store that is temporarily unusable. boto3 raises RuntimeError if refreshed credentials have already expired."""

WEAK_LOCK_WARNING = (
    "the lock of OUTPUT is weak: this store, or this installation (pip install ragassay[s3]), has no conditional writes. Two "
    f"runs that start within {CLAIM_SECONDS} s of each other could both get the lock: schedule one at a time"
)
"""Warning that the lock does not exclude every other run."""

Acquired = TypeVar("Acquired")


@contextmanager
def lock_output(
    folder: Folder, command: str = "", wait: float = 0.0, console: Console | None = None, name: str = LOCK
) -> Iterator[str | None]:
    """Hold a lock of an output folder, so that two commands never write the same data at once.

    On a local disk, it is a lock of the operating system, which ends with the process. In an object store, it is a lease: a
    file that states the holder and is renewed every minute. Another command may take over a lease that was not renewed for
    LEASE_SECONDS. A run that could not renew its lease for that long, or finds the claim of another run, is interrupted.

    Args:
        folder: The output folder.
        command: Name of the command, shown to commands that wait.
        wait: Seconds to wait if another command holds the lock.
        console: Console that shows the wait.
        name: Name of the lock.

    Yields:
        A warning if the lock can't exclude every other run; else None.

    Raises:
        OutputInUse: Another command holds the lock.
        OutputError: Another run took the lock over, the folder can't be written, or its disk is full.
    """
    holder = {"command": command, "host": socket.gethostname(), "pid": os.getpid()}
    acquire = partial(_wait_for_lock, wait=wait, console=console or Console(quiet=True))
    with (
        _hold_local_lock(folder, name, holder, acquire)
        if folder.is_local
        else _hold_lease(folder, name, holder, acquire) as warning
    ):
        try:
            yield warning
        except Exception as error:
            disk_error = next(
                (cause for cause in walk_causes(error) if isinstance(cause, OSError) and is_disk_full(cause)), None
            )
            if disk_error is None:
                raise
            raise make_disk_full_error(disk_error, folder.uri) from error


def _wait_for_lock(attempt: Callable[[], Acquired], poll_seconds: float, *, wait: float, console: Console) -> Acquired:
    """Take a lock, and try again until it is free.

    Raises:
        OutputInUse: The lock was not free in time.
    """
    started = time.monotonic()
    try:
        return attempt()
    except OutputInUse as error:
        if wait <= 0:
            raise
        holder = error.fields["holder"]
    with waiting(console, f"OUTPUT is in use{holder}"):
        while True:
            time.sleep(max(0.0, min(poll_seconds, started + wait - time.monotonic())))
            try:
                return attempt()
            except OutputInUse:
                if time.monotonic() - started >= wait:
                    raise


Acquire = Callable[[Callable[[], Any], float], Any]


@contextmanager
def _hold_local_lock(folder: Folder, name: str, holder: dict[str, Any], acquire: Acquire) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        lock = acquire(partial(_take_local_lock, folder, name), POLL_SECONDS)
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, output=folder.uri, reason=error) from error
    try:
        with suppress(OSError):  # without it, waiting commands can't show the holder
            folder.write(name + HOLDER_SUFFIX, json.dumps({**holder, "since": _now()}))
        yield None
    finally:
        with suppress(OSError):
            folder.delete(name + HOLDER_SUFFIX)
        folder.delete(name)  # while the lock is held: a run that has opened this file notices it and tries again
        lock.release()


def _take_local_lock(folder: Folder, name: str) -> FileLock:
    lock = FileLock(folder.path(name), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        holder = Claim(folder.read(name + HOLDER_SUFFIX) or "", "").holder
        raise OutputInUse(errors.LOCKED, output=folder.uri, holder=_describe_holder(holder), lease="") from error
    return lock


@contextmanager
def _hold_lease(folder: Folder, name: str, holder: dict[str, Any], acquire: Acquire) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        keeper = acquire(partial(_claim_lease, folder, name, holder), POLL_STORE_SECONDS)
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, output=folder.uri, reason=error) from error
    with restore_sigterm():
        handle_sigterm()
        keeper.start()
        try:
            yield keeper.warning
        except BaseException:  # the interruption may arrive as any exception
            if not keeper.lost:
                raise
        finally:
            keeper.release()
    if keeper.lost:
        raise OutputError(errors.LEASE_LOST, output=folder.uri, minutes=LEASE_SECONDS / 60) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _claim_lease(folder: Folder, name: str, holder: dict[str, Any]) -> "_LeaseKeeper":
    """Claim the lease of a folder in the best way that its store supports. The keeper is not started yet."""
    holder = {**holder, "since": _now(), "claim": uuid.uuid4().hex}
    lease = open_lease(folder, name)
    existing = lease.read()
    if existing is not None:
        age = age_in_store(folder, name)
        if age is not None and age < LEASE_SECONDS:
            raise _in_use_error(folder, existing)
    text = json.dumps({**holder, "renewed": 0})
    try:
        claim = lease.write(text, existing)
    except NotImplementedError:
        lease = UnconditionalLease(folder, name)
        claim = lease.write(text, lease.read())
    if claim is None:
        raise _in_use_error(folder, lease.read())
    if isinstance(lease, ConditionalLease) and not lease.honors_conditions(claim):
        lease = UnconditionalLease(folder, name)
        time.sleep(CLAIM_SECONDS)
        current = lease.read()
        if current is None or current.holder.get("claim") != holder["claim"]:
            raise _in_use_error(folder, current)
        claim = current
    return _LeaseKeeper(folder, name, lease, claim)


def _in_use_error(folder: Folder, claim: Claim | None) -> OutputInUse:
    holder = _describe_holder(claim.holder if claim is not None else {})
    lease = f"; if that run is dead, its lock expires {LEASE_SECONDS / 60:.0f} minutes after the last renewal"
    return OutputInUse(errors.LOCKED, output=folder.uri, holder=holder, lease=lease)


def _describe_holder(holder: dict[str, Any]) -> str:
    """Describe the holder of a lock, as far as it is known."""
    command, since = holder.get("command"), holder.get("since")
    parts = [f"host {holder.get('host', 'unknown')}", f"process {holder.get('pid', 'unknown')}"]
    parts += [*([f"`ragassay {command}`"] if command else []), *([f"since {since}"] if since else [])]
    return f" ({', '.join(parts)})"


class _LeaseKeeper:
    """Renews a claim until it is released.

    Attributes:
        lost: Whether another run may hold the lease now. The run is then stopped as by SIGTERM (background jobs ignore Ctrl-C).
        warning: See `lock_output`.
    """

    def __init__(self, folder: Folder, name: str, lease: Lease, claim: Claim) -> None:
        self.lost = False
        self.warning = WEAK_LOCK_WARNING if isinstance(lease, UnconditionalLease) else None
        self._is_main_thread = threading.current_thread() is threading.main_thread()
        self._folder, self._name, self._lease, self._claim = folder, name, lease, claim
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        is_held = False  # also if an unexpected error ends this thread, because the claim is no longer renewed
        try:
            is_held = self._renew_until_released()
        finally:
            if not is_held:
                self._stop_run()

    def _renew_until_released(self) -> bool:
        """Renew the claim every minute; return whether it is still held at the end."""
        renewed = time.monotonic()
        while not self._released.wait(RENEW_SECONDS):
            started = time.monotonic()
            with suppress(*STORE_ERRORS):  # the next attempt comes long before the lease ends
                if not self._renew():
                    return False
                renewed = started
            if time.monotonic() - renewed > LEASE_SECONDS:
                return False
        return True

    def _renew(self) -> bool:
        """Renew the claim; return whether it is still held."""
        holder = self._claim.holder
        renewed = self._lease.write(json.dumps({**holder, "renewed": holder["renewed"] + 1}), self._claim)
        if renewed is None:  # still held if an earlier put arrived late
            renewed = self._lease.read()
            if renewed is None or renewed.holder.get("claim") != holder["claim"]:
                return False
        self._claim = renewed
        return True

    def _stop_run(self) -> None:
        self.lost = True
        if self._is_main_thread and not self._released.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def release(self) -> None:
        self._released.set()
        self._thread.join(timeout=RENEW_SECONDS)
        with suppress(*STORE_ERRORS):  # a remaining claim expires
            current = self._lease.read()
            if current is not None and current.holder.get("claim") == self._claim.holder["claim"]:
                self._folder.delete(self._name)
