"""Run commands without Ray: tasks and actors are plain calls in this process, and a plan processes blocks in order.

Ray takes seconds to start each worker. Tests with the fixture `shared_ray_session` cover Ray itself.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pyarrow.parquet as pq

from ragassay.jobs.runtime.dataflow import Sink
from ragassay.jobs.runtime.ray_session import set_ray_data_log
from ragassay.jobs.runtime.stage_actor import StageActor
from ragassay.pipeline.listener import set_listener
from ragassay.pipeline.stages.stage import Stage, check_columns

SESSIONS = ("run.commands", "second_pass.explain.command", "forecast.trial")
PLANS = ("scoring.score_files", "second_pass.explain.command", "second_pass.escalate.command")


class _Method:
    """Method of an actor, or a task."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.remote = function


class _Actor:
    """Actor, whose methods have `remote`."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def __getattr__(self, name: str) -> _Method:
        return _Method(getattr(self._state, name))


class _Class:
    """Class of actors."""

    def __init__(self, factory: Callable[..., Any]) -> None:
        self._factory = factory

    def options(self, **_: Any) -> "_Class":
        return self

    def remote(self, *arguments: Any, **more: Any) -> _Actor:
        return _Actor(self._factory(*arguments, **more))


def _make_local_remote(ray_remote: Callable[..., Any]) -> Callable[..., Any]:
    """Make a replacement of `ray.remote`, which leaves Ray's own functions and classes to Ray."""

    def remote(target: Callable[..., Any] | None = None, **options: Any) -> Any:
        if target is None:
            return lambda later: remote(later) if not _is_defined_in_ray(later) else ray_remote(**options)(later)
        if _is_defined_in_ray(target):
            return ray_remote(target)
        return _Class(target) if isinstance(target, type) else _Method(target)

    return remote


def _is_defined_in_ray(target: Callable[..., Any]) -> bool:
    return (getattr(target, "__module__", None) or "").startswith("ray.")


def _run_dataflow(
    source: Any, stages: Sequence[Stage], sink: Sink, block_mib: float, board: Any, deadline: float | None = None
) -> None:
    check_columns(stages, source.schema, sink.schema)
    first_pool = next((number for number, stage in enumerate(stages) if stage.replicas is not None), None)
    actors = [StageActor(stage, board, n, deadline if n == first_pool else None) for n, stage in enumerate(stages)]
    write = uuid4().hex
    for number, task in enumerate(source.get_read_tasks(1)):
        for part, table in enumerate(task()):
            block = table
            for actor in actors:
                set_listener(actor)
                block = actor(block)
            if block.num_rows:
                _commit(block.select(sink.schema.names).cast(sink.schema), sink, f"{write}_{number:06d}_{part:06d}")


def _commit(block: Any, sink: Sink, name: str) -> None:
    """Write rows and then their keys, as Ray Data commits them."""
    keys = sink.output.path(f"{sink.checkpoint}/{name}.parquet")
    sink.output.fs.create_dir(sink.output.path(sink.checkpoint), recursive=True)
    pq.write_to_dataset(
        block,
        sink.output.path(sink.name),
        filesystem=sink.output.fs,
        partition_cols=list(sink.partition_keys) or None,
        basename_template=f"{name}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
    )
    pq.write_table(block.select(["row_key"]), keys, filesystem=sink.output.fs)


@contextmanager
def without_ray() -> Iterator[None]:
    """Let commands in this process run without Ray while the block runs."""
    import ray

    with patch.dict(os.environ):  # a first import inside a command would log to its stderr, even after its end
        set_ray_data_log()
        import ray.data

    changes: dict[str, Any] = {
        "ray.remote": _make_local_remote(ray.remote),
        "ray.get": lambda value, **_: value,
        "ray.put": lambda value: value,
        "ray.wait": lambda waiting: (waiting[:1], waiting[1:]),
        "ray.kill": lambda _: None,
        "ragassay.jobs.runtime.stage_actor.clean_process_output": lambda: None,
    }
    changes |= {f"ragassay.jobs.{module}.ray_session": lambda *_: nullcontext() for module in SESSIONS}
    changes |= {f"ragassay.jobs.{module}.run_dataflow": _run_dataflow for module in PLANS}
    with ExitStack() as stack:
        for name, value in changes.items():
            stack.enter_context(patch(name, value))
        yield
