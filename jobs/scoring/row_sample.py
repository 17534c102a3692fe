"""Sample rows by a hash of their ids: the sample is the same on every machine, in every run and order."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.input import LogFile
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.text import ids_to_strings
from ragassay.jobs.storage.store_retries import is_store_error, store_error
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.schemas.columns import Status

_SALT = b"ragassay sample"
_ID_ROWS = 1 << 14


def is_in_sample(row_ids: Iterable[str | None], share: float) -> Bools:
    """Return for each row whether it belongs to the sample. A sample contains every smaller sample.

    Args:
        row_ids: Ids of the rows.
        share: Share of the rows, 0 to 1.
    """
    limit = round(share * (1 << 64))
    return np.array(
        [int.from_bytes(blake2b((row_id or "").encode(), digest_size=8, salt=_SALT).digest()) < limit for row_id in row_ids],
        dtype=bool,
    )


def filter_sample(tables: Iterable[pa.Table], share: float) -> Iterator[pa.Table]:
    """Filter log rows to the sample. Unreadable rows have no id and stay.

    Args:
        tables: Log rows.
        share: Share of the rows, 0 to 1.

    Yields:
        The filtered tables; no empty table.
    """
    for table in tables:
        is_kept = is_in_sample(table["row_id"].to_pylist(), share)
        is_kept |= pc.equal(table["status"], Status.UNREADABLE.value).to_numpy()
        if is_kept.any():
            yield table.filter(pa.array(is_kept))


def find_sample_keys(fs: pafs.FileSystem, file: LogFile, number: int, id_column: str | None, share: float) -> Ints:
    """Find the `row_key`s of the rows of a file that belong to the sample, in order. Rows with unreadable ids all belong to it.

    Args:
        fs: File system of the input.
        file: The file.
        number: Number of the file in the manifest.
        id_column: Column of the row ids; if the file lacks it, ids consist of path and row number.
        share: Share of the rows, 0 to 1.

    Raises:
        InputError: The object store failed.
    """
    if id_column is None or file.schema is None or id_column not in file.schema.names:
        ids = map(file.make_row_id, range(file.rows or 0))
        return np.flatnonzero(is_in_sample(ids, share)).astype(np.int64) + (number << 32)
    parts: list[Bools] = []
    with open_log(fs, file) as log:
        for group, (start, end) in enumerate(zip(starts := [0, *accumulate(log.row_group_sizes)], starts[1:], strict=False)):
            row = start
            try:
                for batch in log.read_batches(group, _ID_ROWS, [id_column]):
                    parts.append(is_in_sample(ids_to_strings(batch[id_column])[0].to_pylist(), share))
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                if is_store_error(error):  # a fault of the store, not of the rows
                    raise store_error(error, file.uri) from error
                parts.append(np.ones(end - row, dtype=bool))
    is_kept = np.concatenate([np.zeros(0, dtype=bool), *parts])
    return np.flatnonzero(is_kept).astype(np.int64) + (number << 32)
