"""The lock of an output folder, so that two runs never write into it together."""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout
from pyarrow import fs as pafs

from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import OutputError

LOCK = "_lock"


CLAIM_SECONDS = 0.5  # longer than a put takes: of two that claim at once, the last put wins


RENEW_SECONDS = 60


LEASE_SECONDS = 600


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Hold the lock of an output folder, so that two runs never write into it together.

    On a local disk it is a lock of the operating system, which ends with the process, however that ends. An object store has
    none: there a file says who holds it, written anew every minute, and one that has not been for LEASE_SECONDS is taken over.

    Raises:
        OutputError: Another run holds it, or the folder can't be written.
    """
    with _locally(folder) if folder.is_local else _leased(folder):
        yield


@contextmanager
def _locally(folder: Folder) -> Iterator[None]:
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        lock = FileLock(folder.path(LOCK), timeout=0)
        lock.acquire()
    except Timeout as error:
        raise OutputError(f"output {folder.uri} is in use by another run on this machine: wait until it ends") from error
    except OSError as error:
        raise OutputError(f"output {folder.uri} can't be written: {error}") from error
    try:
        yield
    finally:
        folder.delete(LOCK)  # while it is held: a run that has opened this file meanwhile notices, and tries anew
        lock.release()


@contextmanager
def _leased(folder: Folder) -> Iterator[None]:
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "claim": uuid.uuid4().hex})
    try:
        folder.fs.create_dir(folder.root, recursive=True)
        _claim(folder, mine)
    except OSError as error:
        raise OutputError(f"output {folder.uri} can't be written: {error}") from error
    done = threading.Event()
    keeper = threading.Thread(target=_keep, args=(folder, mine, done), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join(timeout=RENEW_SECONDS)
        if folder.read(LOCK) == mine:
            folder.delete(LOCK)


def _keep(folder: Folder, mine: str, done: threading.Event) -> None:
    while not done.wait(RENEW_SECONDS):
        with suppress(OSError):  # a put that fails is tried again in a minute, long before the lease ends
            folder.write(LOCK, mine)


def _claim(folder: Folder, mine: str) -> None:
    info = folder.fs.get_file_info(folder.path(LOCK))
    age = time.time() - info.mtime.timestamp() if info.type == pafs.FileType.File else LEASE_SECONDS
    if age < LEASE_SECONDS:
        other = json.loads(folder.read(LOCK) or "{}")
        raise OutputError(
            f"output {folder.uri} is in use by another run (host {other.get('host')}, process {other.get('pid')}): wait until "
            f"it ends; if it is dead, its claim ends {LEASE_SECONDS / 60:.0f} minutes after it was last renewed"
        )
    folder.write(LOCK, mine)
    time.sleep(CLAIM_SECONDS)
    if folder.read(LOCK) != mine:
        raise OutputError(f"output {folder.uri} was taken by another run at the same time: wait until that ends")
