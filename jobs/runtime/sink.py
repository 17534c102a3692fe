"""Where the rows of a plan go."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.storage.folder import Folder

COMMITTED_SUFFIX, PENDING_SUFFIX = ".parquet", ".pending.parquet"
"""Ends of the names of checkpoint files: of committed rows, and of rows that are being written, which end with both."""


@dataclass(frozen=True)
class Sink:
    """Destination of rows: partitioned Parquet in a folder of an output.

    Attributes:
        output: The output folder.
        name: Name of the folder in the output.
        partition_keys: Columns whose values become hive folders.
        schema: Schema of the files.
        checkpoint: Folder of the output in which Ray Data commits rows by `row_key`. The source must skip the rows that are
            committed there. The caller deletes the folder when all rows are done.
    """

    output: Folder
    name: str
    partition_keys: Sequence[str]
    schema: pa.Schema
    checkpoint: str
