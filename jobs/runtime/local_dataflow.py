"""Run rows through stages in this process, one block after the other: for a small input, without the start of Ray."""

from collections.abc import Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ragassay.jobs.progress.counts import CountsBoard
from ragassay.jobs.runtime.sink import COMMITTED_SUFFIX, PENDING_SUFFIX, Sink
from ragassay.jobs.runtime.source import Source
from ragassay.jobs.runtime.stage_actor import StageActor
from ragassay.pipeline.listener import set_listener
from ragassay.pipeline.stages.stage import Stage


def run_local_dataflow(
    source: Source, stages: Sequence[Stage], sink: Sink, board: CountsBoard | None, deadlines: Sequence[float | None]
) -> None:
    """Run rows through stages; see `dataflow.run_dataflow`. Engines are loaded when the first rows reach them.

    `deadlines` has the deadline of each stage.
    """
    actors: list[StageActor] = []
    write = uuid4().hex
    for number, part in enumerate(source.parts):
        for block_number, table in enumerate(part.read()):
            block = table
            for stage_number, stage in enumerate(stages):
                if stage_number == len(actors):
                    actors.append(StageActor(stage, board, stage_number, deadlines[stage_number], in_worker=False))
                set_listener(actors[stage_number])
                block = actors[stage_number](block)
            if block.num_rows:
                commit(block.select(sink.schema.names).cast(sink.schema), sink, f"{write}_{number:06d}_{block_number:06d}")


def commit(block: pa.Table, sink: Sink, name: str) -> None:
    """Write the rows of a block and commit them, in the same steps and files as Ray Data.

    First their keys in a pending file, then the rows, then the pending file gets its final name. `discard_pending` deletes what
    a killed process has left.
    """
    output = sink.output
    output.fs.create_dir(output.path(sink.checkpoint), recursive=True)
    pending, committed = (output.path(f"{sink.checkpoint}/{name}{suffix}") for suffix in (PENDING_SUFFIX, COMMITTED_SUFFIX))
    pq.write_table(block.select(["row_key"]), pending, filesystem=output.fs)
    pq.write_to_dataset(
        block,
        output.path(sink.name),
        filesystem=output.fs,
        partition_cols=list(sink.partition_keys) or None,
        basename_template=f"{name}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        compression="zstd",
    )
    output.fs.move(pending, committed)
