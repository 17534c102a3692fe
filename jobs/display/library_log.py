"""Keep what libraries print off the terminal: a command's log file gets it. `--verbose` shows it instead.

Engines and their libraries write to the file descriptors 1 and 2, from Python and from C++. A command therefore points both
descriptors to a file, and writes its own output to copies of the original ones.
"""

import faulthandler
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ragassay.pipeline.engines.verbosity import is_verbose
from ragassay.pipeline.engines.weights import cache_folder

KEPT_FILES = 20
"""Log files that are kept; the oldest are deleted."""

_WATCH = 'read -r alive || { echo "messages of libraries: $0"; tail -n 3 "$0"; } >&2'
"""Program of a process that waits for a line; if its input ends without one, the command has died."""

_outputs: list[TextIO] = []
_terminals: list[TextIO] = []
_paths: list[Path] = []


def get_terminal() -> TextIO:
    """Return the stream for progress and errors of a command: stderr, also while libraries write to the log file."""
    return _terminals[-1] if _terminals else sys.stderr


def get_output() -> TextIO | None:
    """Return the stream for the result of a command while libraries write to the log file; None if it is stdout."""
    return _outputs[-1] if _outputs else None


def find_log() -> Path | None:
    """Return the log file of the command in progress; None if it is empty, or if there is none."""
    if not _paths:
        return None
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        return _paths[-1] if _paths[-1].stat().st_size else None
    return None


@contextmanager
def capture_library_output() -> Iterator[None]:
    """Write what libraries print during the block to a log file of its own. An empty file is deleted.

    Nothing is captured with `--verbose`, inside another capture, or if stdout or stderr is not the process's own, as in tests.
    """
    if is_verbose() or _terminals or not (_is_stream_of(sys.stdout, 1) and _is_stream_of(sys.stderr, 2)):
        yield
        return
    path, log = _open_log()
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    stdout, terminal = _copy_stream(sys.stdout, 1), _copy_stream(sys.stderr, 2)
    had_handler = faulthandler.is_enabled()
    faulthandler.enable(terminal)  # a crash in C++ ends the process at once
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    _outputs.append(stdout)
    _terminals.append(terminal)
    _paths.append(path)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(BrokenPipeError):
            stdout.close()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in saved:
            os.close(descriptor)
        faulthandler.disable()
        if had_handler:
            faulthandler.enable()
        _outputs.remove(stdout)
        _terminals.remove(terminal)
        _paths.remove(path)
        terminal.close()
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()


@contextmanager
def report_crash() -> Iterator[None]:
    """Name the log file and quote its end if the process dies in the block: a crash in C++ leaves no time for it."""
    if not _paths:
        yield
        return
    watcher = subprocess.Popen(
        ["sh", "-c", _WATCH, str(_paths[-1])],
        stdin=subprocess.PIPE,
        stderr=_terminals[-1],
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        start_new_session=True,  # Ctrl-C must not end it
    )
    try:
        yield
    finally:
        watcher.communicate(b"alive\n")


def _is_stream_of(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError, AttributeError):
        return False


def _copy_stream(stream: TextIO, descriptor: int) -> TextIO:
    """Return a stream that writes where a stream writes now, with its encoding."""
    copy: TextIO = os.fdopen(
        os.dup(descriptor), "w", 1 if descriptor == 2 or stream.isatty() else -1, stream.encoding, stream.errors
    )
    return copy


def _open_log() -> tuple[Path, int]:
    """Create a log file in the cache folder, or where temporary files are, and delete old ones."""
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.log"
    for folder in (cache_folder() / "logs", Path(tempfile.gettempdir()) / f"ragassay-logs-{os.getuid()}"):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            log = os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            _delete_old(folder)
            return folder / name, log
    return Path(os.devnull), os.open(os.devnull, os.O_WRONLY)


def _delete_old(folder: Path) -> None:
    for path in sorted(folder.glob("*.log"))[:-KEPT_FILES]:
        path.unlink(missing_ok=True)


def show_log_records() -> None:
    """Send warnings of libraries' loggers to stderr, wherever it leads now; with `--verbose` also what they report."""
    logging.basicConfig(level=logging.INFO if is_verbose() else logging.WARNING, force=True)
