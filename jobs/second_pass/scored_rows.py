"""Read selected rows of `scored/` through a Ray datasource."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.output.scored_dataset import DataFile, read_rows_by_key
from ragassay.jobs.runtime.source import Part, Source
from ragassay.jobs.runtime.tasks import share
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Ints
from ragassay.schemas.columns import scored_schema

READ_COLUMNS = ["row_key", "row_id", "question", "context", "response", "sentences"]


def group_by_file(files: Sequence[DataFile], numbers: Ints, keys: Ints) -> dict[DataFile, Ints]:
    """Group the keys of rows by file.

    Args:
        files: Files of `scored/`.
        numbers: Index of each row's file in `files`.
        keys: `row_key` of each row.
    """
    return {files[number]: keys[numbers == number] for number in np.unique(numbers)}


def make_row_source(output: Folder, keys_by_file: Mapping[DataFile, Ints], partition_keys: Mapping[str, str]) -> Source:
    """Make a source of rows of `scored/`, with columns for their partition keys.

    Args:
        output: The output folder.
        keys_by_file: File -> `row_key`s of the rows to read.
        partition_keys: Hive key -> column name, in order.
    """
    fs, scored = output.fs, scored_schema(pa.schema([]))

    def make_part(file: DataFile, keys: Ints) -> Part:
        sorted_keys = share(np.sort(keys))
        return Part(lambda: _read_tables(fs, file, sorted_keys.result(), partition_keys), file.path, len(keys))

    schema = pa.schema(
        [*(scored.field(name) for name in READ_COLUMNS), *((name, pa.string()) for name in partition_keys.values())]
    )
    return Source(schema, [make_part(*item) for item in keys_by_file.items()])


def _read_tables(fs: pafs.FileSystem, file: DataFile, keys: Ints, partition_keys: Mapping[str, str]) -> Iterator[pa.Table]:
    for table in read_rows_by_key(fs, file, keys, READ_COLUMNS):
        partition = [pa.array([file.keys.get(key)] * len(table), pa.string()) for key in partition_keys]
        yield pa.table([*table.columns, *partition], names=[*READ_COLUMNS, *partition_keys.values()])
