"""What a second plan reads: chosen rows of `scored/`, as a Ray datasource."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.clean_output import clean_items
from ragassay.jobs.output.partitions import batches, hive_keys
from ragassay.jobs.storage import Folder
from ragassay.pipeline.arrays import Ints
from ragassay.schemas.columns import scored_schema

READ = ["row_key", "row_id", "question", "context", "response", "sentences"]
ROWS = 256
"""Rows that are read at a time, with their texts."""

Place = tuple[str, str]
"""A file of `scored/`: partition, and path on the file system."""


def by_file(paths: Sequence[Place], files: Ints, keys: Ints) -> dict[Place, Ints]:
    """Rows by their files.

    Args:
        paths: Files.
        files: Number of each row's file in `paths`.
        keys: `row_key` of each row.
    """
    return {paths[number]: keys[files == number] for number in np.unique(files)}


def chosen_rows(output: Folder, wanted: Mapping[Place, Ints], partition_keys: Mapping[str, str]) -> Any:
    """A Ray datasource over rows of `scored/`, with the keys of their partitions.

    Args:
        output: The output folder.
        wanted: File -> the `row_key`s of its rows.
        partition_keys: Hive key -> name of its column, in order.
    """
    import ray
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    fs, scored = output.fs, scored_schema(pa.schema([]))
    tasks = [(place, path, ray.put(np.sort(keys)), len(keys)) for (place, path), keys in wanted.items()]

    def read_task(place: str, path: str, keys: Any, count: int, limit: int | None) -> Any:
        def read() -> Iterator[pa.Table]:
            return clean_items(_tables(fs, place, path, ray.get(keys), partition_keys))

        metadata = BlockMetadata(num_rows=count, size_bytes=None, input_files=[path], exec_stats=None)
        return ReadTask(read, metadata, per_task_row_limit=limit)

    class ScoredSource(Datasource):  # type: ignore[misc]
        schema = pa.schema([*(scored.field(name) for name in READ), *((name, pa.string()) for name in partition_keys.values())])

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [read_task(*task, per_task_row_limit) for task in tasks]

    return ScoredSource()


def _tables(fs: pafs.FileSystem, place: str, path: str, keys: Ints, partition_keys: Mapping[str, str]) -> Iterator[pa.Table]:
    values = hive_keys(place)
    for batch in batches(fs, [path], READ, ROWS):
        rows = batch.filter(pa.array(np.isin(batch["row_key"].to_numpy(), keys)))
        if rows.num_rows:
            table = pa.Table.from_batches([rows])
            for key, name in partition_keys.items():
                table = table.append_column(name, pa.array([values.get(key)] * len(table), pa.string()))
            yield table
