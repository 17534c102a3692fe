"""Run rows through stages in this process, one block after the other: for a small input, without the start of Ray."""

from collections.abc import Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ragassay.jobs.progress.counts import CountsBoard
from ragassay.jobs.runtime.sink import Sink
from ragassay.jobs.runtime.source import Source
from ragassay.jobs.runtime.stage_actor import StageActor
from ragassay.pipeline.listener import set_listener
from ragassay.pipeline.stages.stage import Stage


def run_local_dataflow(
    source: Source, stages: Sequence[Stage], sink: Sink, board: CountsBoard | None, deadline: float | None
) -> None:
    """Run rows through stages; see `dataflow.run_dataflow`. Engines are loaded when the first rows reach them."""
    first_pool = next((number for number, stage in enumerate(stages) if stage.replicas is not None), None)
    actors: list[StageActor] = []
    write = uuid4().hex
    for number, part in enumerate(source.parts):
        for block_number, table in enumerate(part.read()):
            block = table
            for stage_number, stage in enumerate(stages):
                if stage_number == len(actors):
                    end = deadline if stage_number == first_pool else None
                    actors.append(StageActor(stage, board, stage_number, end, in_worker=False))
                set_listener(actors[stage_number])
                block = actors[stage_number](block)
            if block.num_rows:
                commit(block.select(sink.schema.names).cast(sink.schema), sink, f"{write}_{number:06d}_{block_number:06d}")


def commit(block: pa.Table, sink: Sink, name: str) -> None:
    """Write rows and then their keys, in the files in which Ray Data writes them."""
    keys = sink.output.path(f"{sink.checkpoint}/{name}.parquet")
    sink.output.fs.create_dir(sink.output.path(sink.checkpoint), recursive=True)
    pq.write_to_dataset(
        block,
        sink.output.path(sink.name),
        filesystem=sink.output.fs,
        partition_cols=list(sink.partition_keys) or None,
        basename_template=f"{name}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        compression="zstd",
    )
    pq.write_table(block.select(["row_key"]), keys, filesystem=sink.output.fs)
