"""`--sample`: a share of the rows, chosen by a hash of their ids: the same on every machine, in every run and order."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from ragassay.jobs.input import LogFile
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.text import id_texts
from ragassay.jobs.storage.object_store import gave_way, gave_way_error
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.schemas.columns import Status

_SALT = b"ragassay sample"
_ID_ROWS = 1 << 14


def is_chosen(row_ids: Iterable[str | None], share: float) -> Bools:
    """Whether rows belong to the sample; those of a smaller share belong to every larger one.

    Args:
        row_ids: The rows' ids.
        share: 0 to 1.
    """
    limit = round(share * (1 << 64))
    return np.array(
        [int.from_bytes(blake2b((row_id or "").encode(), digest_size=8, salt=_SALT).digest()) < limit for row_id in row_ids],
        dtype=bool,
    )


def sampled(tables: Iterable[pa.Table], share: float) -> Iterator[pa.Table]:
    """The chosen ones of log rows; what can't be read has no id to go by, and stays.

    Args:
        tables: Log rows.
        share: 0 to 1.

    Yields:
        None of them empty.
    """
    for table in tables:
        kept = is_chosen(table["row_id"].to_pylist(), share)
        kept |= pc.equal(table["status"], Status.UNREADABLE.value).to_numpy()
        if kept.any():
            yield table.filter(pa.array(kept))


def chosen_keys(fs: pafs.FileSystem, file: LogFile, number: int, id_column: str | None, share: float) -> Ints:
    """`row_key`s of a file's chosen rows, in order; rows whose ids can't be read are all chosen.

    Args:
        fs: The input's file system.
        file: The file.
        number: Its number in the manifest.
        id_column: Its column of ids, if it has that; else ids are made of file and row.
        share: 0 to 1.

    Raises:
        InputError: The object store gave way.
    """
    if id_column is None or file.schema is None or id_column not in file.schema.names:
        ids = (f"{file.path}#{row}" for row in range(file.rows or 0))
        return np.flatnonzero(is_chosen(ids, share)).astype(np.int64) + (number << 32)
    parts: list[Bools] = []
    with open_log(fs, file) as log:
        for group, (start, end) in enumerate(zip(starts := [0, *accumulate(log.sizes)], starts[1:], strict=False)):
            row = start
            try:
                for batch in log.batches(group, _ID_ROWS, [id_column]):
                    parts.append(is_chosen(id_texts(batch[id_column])[0].to_pylist(), share))
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                if gave_way(error):  # that is no fault of the rows
                    raise gave_way_error(error, file.uri) from error
                parts.append(np.ones(end - row, dtype=bool))
    kept = np.concatenate([np.zeros(0, dtype=bool), *parts])
    return np.flatnonzero(kept).astype(np.int64) + (number << 32)
