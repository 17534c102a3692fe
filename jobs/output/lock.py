"""The lock of an output folder, so that two runs never write into it together."""

import json
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from ragassay.jobs.endings import behind, end_at_sigterm, full_message, is_full, sigterm_restored
from ragassay.jobs.output.lease import CLAIM_SECONDS, Claim, ConditionalPut, LastPut, Lease, lease_of, store_age
from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import OutputError

LOCK = "_lock"

RENEW_SECONDS = 60.0

LEASE_SECONDS = 600.0

NO_CONDITIONS = (
    "the lock of OUTPUT: this store, or this installation (pip install ragassay[s3]), has no put on a condition; two runs "
    f"that start within {CLAIM_SECONDS} s of each other could both get in: schedule one at a time"
)
"""Said where the lock leaves a gap."""


@contextmanager
def locked(folder: Folder) -> Iterator[str | None]:
    """Hold the lock of an output folder, so that two runs never write into it together.

    On a local disk it is a lock of the operating system, which ends with the process, however that ends. An object store has
    none: there a file says who holds it, written anew every minute, and one that has not been for LEASE_SECONDS is taken over.
    A run that could not write it for so long, or finds another's, ends as if it were stopped.

    Yields:
        What is to be known of the lock, if it can't keep out every other run; else None.

    Raises:
        OutputError: Another run holds it, or has taken it over; or the folder can't be written, or its disk is full.
    """
    with _locally(folder) if folder.is_local else _leased(folder) as note:
        try:
            yield note
        except Exception as error:
            full = next((one for one in behind(error) if isinstance(one, OSError) and is_full(one)), None)
            if full is None:
                raise
            raise OutputError(full_message(full, folder.uri)) from error


@contextmanager
def _locally(folder: Folder) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        lock = FileLock(folder.path(LOCK), timeout=0)
        lock.acquire()
    except Timeout as error:
        raise OutputError(f"output {folder.uri} is in use by another run on this machine: wait until it ends") from error
    except OSError as error:
        raise OutputError(f"output {folder.uri} can't be written: {error}") from error
    try:
        yield None
    finally:
        folder.delete(LOCK)  # while it is held: a run that has opened this file meanwhile notices, and tries anew
        lock.release()


@contextmanager
def _leased(folder: Folder) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        keeper = _claimed(folder)
    except OSError as error:
        raise OutputError(f"output {folder.uri} can't be written: {error}") from error
    with sigterm_restored():
        end_at_sigterm()
        keeper.start()
        try:
            yield keeper.note
        except BaseException:  # whatever became of the interruption on its way
            if not keeper.lost:
                raise
        finally:
            keeper.release()
    if keeper.lost:
        raise OutputError(
            f"output {folder.uri}: this run's claim was not renewed for {LEASE_SECONDS / 60:.0f} minutes, or another run has "
            "taken it over, so this one has stopped; when no other is at work there, the same command goes on where it stopped"
        ) from None


def _claimed(folder: Folder) -> "_Keeper":
    """The claim on a folder, by whichever way its store has; it is still to be kept."""
    who = {"host": socket.gethostname(), "pid": os.getpid(), "claim": uuid.uuid4().hex}
    lease = lease_of(folder, LOCK)
    before = lease.read()
    if before is not None:
        age = store_age(folder, LOCK)
        if age is not None and age < LEASE_SECONDS:
            raise _in_use(folder, before)
    text = json.dumps({**who, "renewed": 0})
    try:
        mine = lease.write(text, before)
    except NotImplementedError:
        lease = LastPut(folder, LOCK)
        mine = lease.write(text, lease.read())
    if mine is None:
        raise _in_use(folder, lease.read())
    if isinstance(lease, ConditionalPut) and not lease.keeps_conditions(mine):
        lease = LastPut(folder, LOCK)
        time.sleep(CLAIM_SECONDS)
        now = lease.read()
        if now is None or now.holder.get("claim") != who["claim"]:
            raise _in_use(folder, now)
        mine = now
    return _Keeper(folder, lease, mine)


def _in_use(folder: Folder, other: Claim | None) -> OutputError:
    holder = other.holder if other is not None else {}
    return OutputError(
        f"output {folder.uri} is in use by another run (host {holder.get('host')}, process {holder.get('pid')}): wait until "
        f"it ends; if it is dead, its claim ends {LEASE_SECONDS / 60:.0f} minutes after it was last renewed"
    )


class _Keeper:
    """Renews a claim until it is released.

    Attributes:
        lost: Whether another may hold it now; the run is stopped then, as by SIGTERM (background jobs hear no Ctrl-C).
        note: See `locked`.
    """

    def __init__(self, folder: Folder, lease: Lease, mine: Claim) -> None:
        self.lost = False
        self.note = NO_CONDITIONS if isinstance(lease, LastPut) else None
        self._here = threading.current_thread() is threading.main_thread()
        self._folder, self._lease, self._mine = folder, lease, mine
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _keep(self) -> None:
        renewed = time.monotonic()
        while not self._done.wait(RENEW_SECONDS):
            began = time.monotonic()
            # A put that fails, in whichever library, is tried again in a minute, long before the lease ends.
            with suppress(Exception):
                if not self._renew():
                    return self._stop()
                renewed = began
            if time.monotonic() - renewed > LEASE_SECONDS:
                return self._stop()

    def _renew(self) -> bool:
        """Write it anew; whether it is still ours."""
        holder = self._mine.holder
        now = self._lease.write(json.dumps({**holder, "renewed": holder["renewed"] + 1}), self._mine)
        if now is None:  # ours all the same, where an earlier put has come late
            now = self._lease.read()
            if now is None or now.holder.get("claim") != holder["claim"]:
                return False
        self._mine = now
        return True

    def _stop(self) -> None:
        self.lost = True
        if self._here and not self._done.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def release(self) -> None:
        self._done.set()
        self._thread.join(timeout=RENEW_SECONDS)
        with suppress(Exception):  # what is left ends by itself
            now = self._lease.read()
            if now is not None and now.holder.get("claim") == self._mine.holder["claim"]:
                self._folder.delete(LOCK)
