"""The locks of an output folder: a command that writes its data holds one, and others wait for it.

`LOCK` is of commands that write the manifest or `scored/`. `explain`, `publish` and `table` write apart from these, and each
has a lock of its own. Commands that only read take none: see `jobs.output.snapshot`.
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
from ragassay.jobs.output.lease import CLAIM_SECONDS, Claim, ConditionalPut, LastPut, Lease, lease_of, store_age
from ragassay.jobs.progress.task import waiting
from ragassay.jobs.runtime.endings import handle_sigterm, is_disk_full, make_disk_full_error, restore_sigterm, walk_causes
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputError, OutputInUse

LOCK = "_lock"
HOLDER = "-holder"
"""Behind the name of a lock on a local disk: the file that says who holds it."""

POLL_SECONDS = 1.0
POLL_STORE_SECONDS = 5.0
"""How often a command that waits tries again: on a local disk, and on an object store."""

RENEW_SECONDS = 60.0

LEASE_SECONDS = 600.0

TROUBLE = (OSError, RuntimeError)
"""Of a store that can't be used for now: its errors; and that of boto3 where refreshed credentials are expired already."""

NO_CONDITIONS = (
    "the lock of OUTPUT: this store, or this installation (pip install ragassay[s3]), has no put on a condition; two runs "
    f"that start within {CLAIM_SECONDS} s of each other could both get in: schedule one at a time"
)
"""Said where the lock leaves a gap."""

Held = TypeVar("Held")


@contextmanager
def locked(
    folder: Folder, command: str = "", wait: float = 0.0, console: Console | None = None, name: str = LOCK
) -> Iterator[str | None]:
    """Hold a lock of an output folder, so that two commands never write the same of it together.

    On a local disk it is a lock of the operating system, which ends with the process, however that ends. An object store has
    none: there a file says who holds it, written anew every minute, and one that has not been for LEASE_SECONDS is taken over.
    A run that could not write it for so long, or finds another's, ends as if it were stopped.

    Args:
        folder: The output folder.
        command: Who takes it, for those that wait.
        wait: Seconds to wait where another holds it.
        console: Where the waiting is shown.
        name: Which lock.

    Yields:
        What is to be known of the lock, if it can't keep out every other run; else None.

    Raises:
        OutputInUse: Another holds it.
        OutputError: Another run has taken it over; or the folder can't be written, or its disk is full.
    """
    who = {"command": command, "host": socket.gethostname(), "pid": os.getpid()}
    patiently = partial(_patiently, wait=wait, console=console or Console(quiet=True))
    with _locally(folder, name, who, patiently) if folder.is_local else _leased(folder, name, who, patiently) as note:
        try:
            yield note
        except Exception as error:
            full = next((one for one in walk_causes(error) if isinstance(one, OSError) and is_disk_full(one)), None)
            if full is None:
                raise
            raise make_disk_full_error(full, folder.uri) from error


def _patiently(take: Callable[[], Held], poll: float, *, wait: float, console: Console) -> Held:
    """Take a lock, and try again until it is free.

    Raises:
        OutputInUse: It was not free in time.
    """
    began = time.monotonic()
    try:
        return take()
    except OutputInUse as error:
        if wait <= 0:
            raise
        holder = error.fields["holder"]
    with waiting(console, f"OUTPUT is in use{holder}"):
        while True:
            time.sleep(max(0.0, min(poll, began + wait - time.monotonic())))
            try:
                return take()
            except OutputInUse:
                if time.monotonic() - began >= wait:
                    raise


Patiently = Callable[[Callable[[], Any], float], Any]


@contextmanager
def _locally(folder: Folder, name: str, who: dict[str, Any], patiently: Patiently) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        lock = patiently(partial(_taken, folder, name), POLL_SECONDS)
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, output=folder.uri, reason=error) from error
    try:
        with suppress(OSError):  # whoever has to wait is told less
            folder.write(name + HOLDER, json.dumps({**who, "since": _now()}))
        yield None
    finally:
        with suppress(OSError):
            folder.delete(name + HOLDER)
        folder.delete(name)  # while it is held: a run that has opened this file meanwhile notices, and tries anew
        lock.release()


def _taken(folder: Folder, name: str) -> FileLock:
    lock = FileLock(folder.path(name), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        holder = Claim(folder.read(name + HOLDER) or "", "").holder
        raise OutputInUse(errors.LOCKED, output=folder.uri, holder=_said(holder), lease="") from error
    return lock


@contextmanager
def _leased(folder: Folder, name: str, who: dict[str, Any], patiently: Patiently) -> Iterator[str | None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        keeper = patiently(partial(_claimed, folder, name, who), POLL_STORE_SECONDS)
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, output=folder.uri, reason=error) from error
    with restore_sigterm():
        handle_sigterm()
        keeper.start()
        try:
            yield keeper.note
        except BaseException:  # whatever became of the interruption on its way
            if not keeper.lost:
                raise
        finally:
            keeper.release()
    if keeper.lost:
        raise OutputError(errors.LEASE_LOST, output=folder.uri, minutes=LEASE_SECONDS / 60) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _claimed(folder: Folder, name: str, who: dict[str, Any]) -> "_Keeper":
    """The claim on a folder, by whichever way its store has; it is still to be kept."""
    who = {**who, "since": _now(), "claim": uuid.uuid4().hex}
    lease = lease_of(folder, name)
    before = lease.read()
    if before is not None:
        age = store_age(folder, name)
        if age is not None and age < LEASE_SECONDS:
            raise _in_use(folder, before)
    text = json.dumps({**who, "renewed": 0})
    try:
        mine = lease.write(text, before)
    except NotImplementedError:
        lease = LastPut(folder, name)
        mine = lease.write(text, lease.read())
    if mine is None:
        raise _in_use(folder, lease.read())
    if isinstance(lease, ConditionalPut) and not lease.keeps_conditions(mine):
        lease = LastPut(folder, name)
        time.sleep(CLAIM_SECONDS)
        now = lease.read()
        if now is None or now.holder.get("claim") != who["claim"]:
            raise _in_use(folder, now)
        mine = now
    return _Keeper(folder, name, lease, mine)


def _in_use(folder: Folder, other: Claim | None) -> OutputInUse:
    holder = _said(other.holder if other is not None else {})
    lease = f"; if it is dead, its claim ends {LEASE_SECONDS / 60:.0f} minutes after it was last renewed"
    return OutputInUse(errors.LOCKED, output=folder.uri, holder=holder, lease=lease)


def _said(holder: dict[str, Any]) -> str:
    """Who holds a lock, in words, as far as that is known."""
    command, since = holder.get("command"), holder.get("since")
    parts = [f"host {holder.get('host', 'unknown')}", f"process {holder.get('pid', 'unknown')}"]
    parts += [*([f"`ragassay {command}`"] if command else []), *([f"since {since}"] if since else [])]
    return f" ({', '.join(parts)})"


class _Keeper:
    """Renews a claim until it is released.

    Attributes:
        lost: Whether another may hold it now; the run is stopped then, as by SIGTERM (background jobs hear no Ctrl-C).
        note: See `locked`.
    """

    def __init__(self, folder: Folder, name: str, lease: Lease, mine: Claim) -> None:
        self.lost = False
        self.note = NO_CONDITIONS if isinstance(lease, LastPut) else None
        self._here = threading.current_thread() is threading.main_thread()
        self._folder, self._name, self._lease, self._mine = folder, name, lease, mine
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _keep(self) -> None:
        is_ours = False  # also where an unexpected error ends this thread: nobody renews the claim then
        try:
            is_ours = self._renew_until_released()
        finally:
            if not is_ours:
                self._stop()

    def _renew_until_released(self) -> bool:
        """Renew it every minute; whether it is still ours at the end."""
        renewed = time.monotonic()
        while not self._done.wait(RENEW_SECONDS):
            began = time.monotonic()
            with suppress(*TROUBLE):  # the next try comes long before the lease ends
                if not self._renew():
                    return False
                renewed = began
            if time.monotonic() - renewed > LEASE_SECONDS:
                return False
        return True

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
        with suppress(*TROUBLE):  # what is left ends by itself
            now = self._lease.read()
            if now is not None and now.holder.get("claim") == self._mine.holder["claim"]:
                self._folder.delete(self._name)
