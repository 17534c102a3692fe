"""The rows of a partition of `scored/`, as they are sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs.output.partitions import batches
from ragassay.jobs.storage import Folder
from ragassay.pipeline.errors import OutputError

ROWS = 256
"""Rows in memory at a time, with their sentences."""


def columns_of(output: Folder, files: Sequence[str]) -> list[str]:
    """Names of the columns of a partition."""
    with _readable(files[0]):
        return list(pq.read_schema(files[0], filesystem=output.fs).names)


def rows_of(output: Folder, files: Sequence[str]) -> int:
    """How many rows a partition has."""
    total = 0
    for path in files:
        with _readable(path), pq.ParquetFile(path, filesystem=output.fs) as parquet:
            total += parquet.metadata.num_rows
    return total


def read_rows(output: Folder, files: Sequence[str], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of a partition, in the order in which they stand; a column that a file has not is null there.

    Raises:
        OutputError: A file can't be read.
    """
    for path in sorted(files):
        with _readable(path):
            there = set(pq.read_schema(path, filesystem=output.fs).names)
            absent = dict.fromkeys(name for name in columns if name not in there)
            for batch in batches(output.fs, [path], [name for name in columns if name in there], ROWS):
                for row in batch.to_pylist():
                    yield {**row, **absent}


def repeated_ids(output: Folder, files: Sequence[str]) -> set[str]:
    """Ids that several rows of a partition have: 8 bytes a row are held to find them."""
    hashes: list[Any] = []
    for path in files:
        with _readable(path), pq.ParquetFile(path, filesystem=output.fs) as parquet:
            hashes += [_hashes(batch["row_id"]) for batch in parquet.iter_batches(columns=["row_id"])]
    values, counts = np.unique(np.concatenate(hashes or [np.array([], np.int64)]), return_counts=True)
    twice = values[counts > 1]
    if not len(twice):
        return set()
    found: set[str] = set()
    for path in files:
        with pq.ParquetFile(path, filesystem=output.fs) as parquet:
            for batch in parquet.iter_batches(columns=["row_id"]):
                hit = np.isin(_hashes(batch["row_id"]), twice)
                found.update(batch["row_id"].filter(pa.array(hit)).to_pylist())
    return found


def _hashes(ids: pa.Array) -> Any:
    return np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids))


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"{path} can't be read: {error}. `ragassay finalize` writes it anew") from error
