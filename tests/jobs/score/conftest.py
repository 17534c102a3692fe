"""Runs in this process."""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from ragassay.jobs.plan import Sink, Stage
from tests.jobs.conftest import tasks_here


@pytest.fixture(scope="module")
def plans_here() -> Iterator[None]:
    """Plans in this process; what a table's rows are is written and committed before the next one is read, as Ray commits."""

    def run_plan(source: Any, stages: list[Stage], sink: Sink, block_mib: float) -> None:
        steps = [stage.step() if stage.replicas else stage.step for stage in stages]
        folder = Path(sink.output.path(sink.checkpoint))
        folder.mkdir(exist_ok=True)
        for read in source.get_read_tasks(1):
            for table in read():
                done = reduce(lambda rows, step: step(rows), steps, table)
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

    from ragassay.jobs.score import plan

    with tasks_here(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "run_plan", run_plan)
        patch.setattr(plan, "progress", lambda stages, *_: nullcontext(stages))
        patch.setattr(ray, "put", lambda kept: kept)
        yield
