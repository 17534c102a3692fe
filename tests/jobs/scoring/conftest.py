"""Runs in this process."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from ragassay.jobs.runtime.dataflow import Sink
from ragassay.pipeline.stages.stage import Stage, check_columns
from tests.conftest import run_stages
from tests.jobs.conftest import tasks_here


@pytest.fixture(scope="module")
def plans_here() -> Iterator[None]:
    """Plans in this process; what a table's rows are is written and committed before the next one is read, as Ray commits."""

    def run_plan(source: Any, stages: list[Stage], sink: Sink, *_: Any) -> None:
        check_columns(stages, source.schema, sink.schema)
        folder = Path(sink.output.path(sink.checkpoint))
        folder.mkdir(exist_ok=True)
        for read in source.get_read_tasks(1):
            for table in read():
                done = run_stages(stages, table)
                name = uuid4().hex
                pq.write_to_dataset(
                    done.select(sink.schema.names).cast(sink.schema),
                    sink.output.path(sink.name),
                    filesystem=sink.output.fs,
                    partition_cols=list(sink.partition_keys),
                    basename_template=f"{name}-{{i}}.parquet",
                )
                pq.write_table(done.select(["row_key"]), folder / f"{name}.parquet")

    import ray

    from ragassay.jobs.scoring import plan

    with tasks_here(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "run_plan", run_plan)
        patch.setattr(plan, "progress", lambda *_: nullcontext())
        patch.setattr(ray, "put", lambda kept: kept)
        yield
