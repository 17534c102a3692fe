"""Find repeated hashes among very many, in bounded memory."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedRandom

import numpy as np
import numpy.typing as npt

from ragassay.jobs.input import errors
from ragassay.pipeline.errors import InputError

Hashes = npt.NDArray[np.uint64]

MAX_HASHES_IN_MEMORY = 1 << 25
"""Maximum number of hashes in memory: 256 MiB."""


class DuplicateFinder:
    """Collects hashes and finds those that were added more than once.

    If more hashes are expected than fit in memory, they are written to the local disk, 8 bytes each, in one file per range of
    hashes; one range is then searched at a time. The files are unnamed and disappear with the process.
    """

    def __init__(self, expected: int, in_memory: int = MAX_HASHES_IN_MEMORY) -> None:
        """Create an empty finder.

        Args:
            expected: Expected number of hashes.
            in_memory: Maximum number of hashes in memory; a power of two.
        """
        self._in_memory, self._expected = in_memory, expected
        bits = max(0, (max(expected, 1) - 1).bit_length() - (in_memory.bit_length() - 1))
        self._hashes = np.empty(0 if bits else expected, np.uint64)
        self._count = 0
        self._exit_stack = ExitStack()
        ranges = range(1 << bits if bits else 0)
        self._files = [self._exit_stack.enter_context(tempfile.TemporaryFile()) for _ in ranges]  # noqa: SIM115
        self._range_starts = np.arange(1, len(self._files), dtype=np.uint64) << np.uint64(64 - bits if bits else 0)

    def __enter__(self) -> "DuplicateFinder":
        """Return the finder; its files are closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._exit_stack.close()

    def add(self, hashes: Hashes) -> None:
        """Add hashes.

        Raises:
            InputError: The disk is full.
        """
        if not self._files:
            if self._count + len(hashes) > len(self._hashes):  # more hashes than expected
                self._hashes = np.concatenate([self._hashes[: self._count], np.empty(self._count + len(hashes), np.uint64)])
            self._hashes[self._count : self._count + len(hashes)] = hashes
            self._count += len(hashes)
            return
        ordered = np.sort(hashes)
        try:
            for file, part in zip(self._files, np.split(ordered, np.searchsorted(ordered, self._range_starts)), strict=True):
                file.write(part.tobytes())
        except OSError as error:
            raise _disk_full_error(self._expected, error) from error

    def find_duplicates(self, limit: int) -> Hashes:
        """Return the hashes that were added more than once, without repeats.

        Args:
            limit: Stop after the range in which this number of duplicates is reached.
        """
        duplicates = [np.empty(0, np.uint64)]
        for parts in self._read_ranges():
            known = np.empty(0, np.uint64)
            for part in parts:  # usually one part; more if a range contains very frequent hashes
                merged = part if not len(known) else np.concatenate([known, part])
                merged.sort()
                is_repeat = merged[1:] == merged[:-1]
                duplicates.append(np.unique(merged[1:][is_repeat]))
                if len(part) == self._in_memory:
                    known = np.concatenate([merged[:1], merged[1:][~is_repeat]])
            if sum(map(len, duplicates)) >= limit:
                break
        return np.unique(np.concatenate(duplicates))

    def _read_ranges(self) -> Iterator[Iterator[Hashes]]:
        if not self._files:
            yield iter([self._hashes[: self._count]])
        part = np.empty(self._in_memory if self._files else 0, np.uint64)
        for file in self._files:
            yield self._read_range(file, part)

    def _read_range(self, file: BufferedRandom, part: Hashes) -> Iterator[Hashes]:
        try:
            file.seek(0)
        except OSError as error:  # seek writes buffered data first
            raise _disk_full_error(self._expected, error) from error
        while size := file.readinto(part.data.cast("B")):
            yield part[: size // 8]


def _disk_full_error(expected: int, error: OSError) -> InputError:
    return InputError(errors.NO_ROOM_FOR_IDS, bytes=8 * expected, folder=tempfile.gettempdir(), reason=error)
