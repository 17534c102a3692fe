"""A set of rows by their `row_key`s. It takes memory by what is ragged in it, never more than a bit for each row."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Bools, Ints

Bits = npt.NDArray[np.uint8]

CHUNK = 16
"""Lower bits of a key that tell its place in a chunk: 65,536 rows of one file."""

BIT = np.array([128 >> place for place in range(8)], np.uint8)
"""The bit of each of the rows of a byte; the first row has the highest."""

FIRST = {256 - (256 >> rows): rows for rows in range(1, 9)}
"""A byte that has its first rows and no others -> how many these are."""


class RowSet:
    """A set of `row_key`s, in chunks of neighbouring rows.

    A chunk that holds its first rows and no others, as one that is whole does, is kept as their number; any other as a bit for
    each of its rows, up to the last that it holds. So rows that were committed block by block take some hundred bytes a chunk
    that is begun, and 8 KiB at most in whatever order or selection they come.
    """

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        """An empty set."""
        self._chunks: dict[int, int | Bits] = {}

    def __len__(self) -> int:
        """How many rows it holds."""
        return sum(chunk if isinstance(chunk, int) else int(np.bitwise_count(chunk).sum()) for chunk in self._chunks.values())

    def __bool__(self) -> bool:
        """Whether it holds any."""
        return bool(self._chunks)

    def add(self, keys: Ints) -> None:
        """Add rows.

        Args:
            keys: Their `row_key`s, >= 0, in any order; a key may be there more than once.
        """
        for number, rows in _by_chunk(np.sort(keys)):
            bits = _bits(self._chunks.get(number, 0), int(rows[-1] >> 3) + 1)
            np.bitwise_or.at(bits, rows >> 3, BIT[rows & 7])
            first = FIRST.get(int(bits[-1]))
            self._chunks[number] = 8 * (len(bits) - 1) + first if first and (bits[:-1] == 255).all() else bits

    def holds(self, keys: Ints) -> Bools:
        """Which rows it holds.

        Args:
            keys: Their `row_key`s, in order.
        """
        return np.concatenate([np.zeros(0, bool), *(_held(self._chunks.get(n, 0), rows) for n, rows in _by_chunk(keys))])

    def count(self, start: int, stop: int) -> int:
        """How many of the rows `start <= row_key < stop` it holds."""
        found = 0
        for number in range(start >> CHUNK, ((stop - 1) >> CHUNK) + 1):
            first, chunk = number << CHUNK, self._chunks.get(number, 0)
            low, high = max(start - first, 0), stop - first
            found += max(0, min(chunk, high) - low) if isinstance(chunk, int) else int(np.unpackbits(chunk)[low:high].sum())
        return found

    def rows(self, start: int, stop: int) -> Ints:
        """Those of the rows `start <= row_key < stop` that it holds, in order."""
        numbers = range(start >> CHUNK, ((stop - 1) >> CHUNK) + 1)
        found = [_places(self._chunks[n]) + (n << CHUNK) for n in numbers if n in self._chunks]
        keys = np.concatenate([np.zeros(0, np.int64), *found])
        return np.asarray(keys[slice(*np.searchsorted(keys, [start, stop]))])

    @property
    def files(self) -> set[int]:
        """Numbers of the files of which it holds rows."""
        return {number >> (32 - CHUNK) for number in self._chunks}

    def shifted(self, by: int) -> "RowSet":
        """The same rows under `row_key`s that are so much higher, a multiple of a chunk; the two share their chunks."""
        moved = RowSet()
        moved._chunks = {number + (by >> CHUNK): chunk for number, chunk in self._chunks.items()}
        return moved

    def near(self, start: int, stop: int) -> "RowSet":
        """What it holds of the chunks around the rows `start <= row_key < stop`; the two share them."""
        part = RowSet()
        numbers = range(start >> CHUNK, ((stop - 1) >> CHUNK) + 1)
        part._chunks = {number: self._chunks[number] for number in numbers if number in self._chunks}
        return part


def joined(parts: Iterable[RowSet]) -> RowSet:
    """Parts of one set, as `near` gives them, as one."""
    whole = RowSet()
    for part in parts:
        whole._chunks |= part._chunks
    return whole


def _by_chunk(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Ordered keys by their chunks: number, and places in it."""
    if len(keys):
        numbers = keys >> CHUNK
        ends = np.flatnonzero(np.diff(numbers)) + 1
        for rows in np.split(keys, ends):
            yield int(rows[0] >> CHUNK), rows & ((1 << CHUNK) - 1)


def _bits(chunk: int | Bits, length: int) -> Bits:
    """A chunk's bits, of so many bytes at least, to be changed."""
    if isinstance(chunk, int):
        chunk = np.packbits(np.arange(max(8 * length, chunk)) < chunk)
    return np.concatenate([chunk, np.zeros(max(0, length - len(chunk)), np.uint8)])


def _places(chunk: int | Bits) -> Ints:
    return np.arange(chunk) if isinstance(chunk, int) else np.flatnonzero(np.unpackbits(chunk))


def _held(chunk: int | Bits, rows: Ints) -> Bools:
    if isinstance(chunk, int):
        return np.asarray(rows < chunk)
    inside = rows < 8 * len(chunk)
    near = np.where(inside, rows, 0)
    return np.asarray(inside & ((chunk[near >> 3] & BIT[near & 7]) > 0))
