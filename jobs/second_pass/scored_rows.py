"""Read selected rows of `scored/` through a Ray datasource."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.output.scored_dataset import DataFile, read_rows_by_key
from ragassay.jobs.runtime.clean_output import clean_items
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


def make_row_source(output: Folder, keys_by_file: Mapping[DataFile, Ints], partition_keys: Mapping[str, str]) -> Any:
    """Make a Ray datasource of rows of `scored/`, with columns for their partition keys.

    Args:
        output: The output folder.
        keys_by_file: File -> `row_key`s of the rows to read.
        partition_keys: Hive key -> column name, in order.
    """
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    fs, scored = output.fs, scored_schema(pa.schema([]))
    tasks = [(file, ray.put(np.sort(keys)), len(keys)) for file, keys in keys_by_file.items()]

    def read_task(file: DataFile, keys: Any, count: int, limit: int | None) -> Any:
        def read() -> Iterator[pa.Table]:
            return clean_items(_read_tables(fs, file, ray.get(keys), partition_keys))

        metadata = BlockMetadata(num_rows=count, size_bytes=None, input_files=[file.path], exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)

    class ScoredSource(Datasource):  # type: ignore[misc]
        rows = None  # each block is a paid answer of a larger model: commit it soon
        schema = pa.schema(
            [*(scored.field(name) for name in READ_COLUMNS), *((name, pa.string()) for name in partition_keys.values())]
        )

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [read_task(*task, per_task_row_limit) for task in tasks]

    return ScoredSource()


def _read_tables(fs: pafs.FileSystem, file: DataFile, keys: Ints, partition_keys: Mapping[str, str]) -> Iterator[pa.Table]:
    for table in read_rows_by_key(fs, file, keys, READ_COLUMNS):
        partition = [pa.array([file.keys.get(key)] * len(table), pa.string()) for key in partition_keys]
        yield pa.table([*table.columns, *partition], names=[*READ_COLUMNS, *partition_keys.values()])
