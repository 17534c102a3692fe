"""Which of very many hashes come twice, in memory that does not grow with their number."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedRandom

import numpy as np
import numpy.typing as npt

from ragassay.jobs.input import errors
from ragassay.pipeline.errors import InputError

Hashes = npt.NDArray[np.uint64]

IN_MEMORY = 1 << 25
"""Hashes that stand in memory together: 256 MiB."""


class Twice:
    """Takes hashes, and tells which it was given more than once.

    Where more are expected than may stand in memory they go to this machine's disk, 8 bytes each, a file for every range of
    hashes, and one range is looked through at a time. The files have no name, and end with the process.
    """

    def __init__(self, expected: int, in_memory: int = IN_MEMORY) -> None:
        """Start without any.

        Args:
            expected: How many will come at most.
            in_memory: How many may stand in memory together; a power of two.
        """
        self._in_memory, self._expected = in_memory, expected
        bits = max(0, (max(expected, 1) - 1).bit_length() - (in_memory.bit_length() - 1))
        self._held = np.empty(0 if bits else expected, np.uint64)
        self._there = 0
        self._open = ExitStack()
        ranges = range(1 << bits if bits else 0)
        self._files = [self._open.enter_context(tempfile.TemporaryFile()) for _ in ranges]  # noqa: SIM115
        self._starts = np.arange(1, len(self._files), dtype=np.uint64) << np.uint64(64 - bits if bits else 0)

    def __enter__(self) -> "Twice":
        """Itself; the files are closed when the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._open.close()

    def add(self, hashes: Hashes) -> None:
        """Take hashes.

        Raises:
            InputError: The disk has no room for them.
        """
        if not self._files:
            if self._there + len(hashes) > len(self._held):  # more than were expected
                self._held = np.concatenate([self._held[: self._there], np.empty(self._there + len(hashes), np.uint64)])
            self._held[self._there : self._there + len(hashes)] = hashes
            self._there += len(hashes)
            return
        ordered = np.sort(hashes)
        try:
            for file, part in zip(self._files, np.split(ordered, np.searchsorted(ordered, self._starts)), strict=True):
                file.write(part.tobytes())
        except OSError as error:
            raise _no_room(self._expected, error) from error

    def found(self, most: int) -> Hashes:
        """Hashes that it was given more than once, each once; no range is looked through when there are `most` of them."""
        found = [np.empty(0, np.uint64)]
        for parts in self._ranges():
            known = np.empty(0, np.uint64)
            for part in parts:  # one; more only where a range has many hashes because they come so often
                both = part if not len(known) else np.concatenate([known, part])
                both.sort()
                again = both[1:] == both[:-1]
                found.append(np.unique(both[1:][again]))
                if len(part) == self._in_memory:
                    known = np.concatenate([both[:1], both[1:][~again]])
            if sum(map(len, found)) >= most:
                break
        return np.unique(np.concatenate(found))

    def _ranges(self) -> Iterator[Iterator[Hashes]]:
        if not self._files:
            yield iter([self._held[: self._there]])
        part = np.empty(self._in_memory if self._files else 0, np.uint64)
        for file in self._files:
            yield self._read(file, part)

    def _read(self, file: BufferedRandom, part: Hashes) -> Iterator[Hashes]:
        try:
            file.seek(0)
        except OSError as error:  # what was held back is written first
            raise _no_room(self._expected, error) from error
        while there := file.readinto(part.data.cast("B")):
            yield part[: there // 8]


def _no_room(expected: int, error: OSError) -> InputError:
    return InputError(errors.NO_ROOM_FOR_IDS, bytes=8 * expected, folder=tempfile.gettempdir(), reason=error)
