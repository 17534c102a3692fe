"""Run rows from a source through stages into a sink. A second run of the same plan skips the rows that are committed."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from ragassay.jobs.runtime.clean_output import clean_errors, clean_items
from ragassay.jobs.runtime.deaths import explain_death
from ragassay.jobs.runtime.local_dataflow import run_local_dataflow
from ragassay.jobs.runtime.resources import MIN_LIGHT_CPUS, choose_light_cpus, sum_max_pool_cpus, sum_min_pool_cpus
from ragassay.jobs.runtime.sink import Sink
from ragassay.jobs.runtime.source import Part, Source
from ragassay.jobs.runtime.stage_actor import StageActor, run_stage
from ragassay.jobs.runtime.tasks import is_local
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.stages.stage import Stage, check_columns

BLOCKS_PER_WORKER = 8
"""Maximum blocks in progress per replica or CPU: enough that no worker waits.

Without a limit, readers fill half of Ray's memory.
"""

MIN_IN_FLIGHT_MIB = 256
"""MiB of blocks that may always be in progress."""

NO_PROGRESS_SECONDS = 6 * 3600
"""Time without a finished block after which Ray Data fails the run.

Its default, half an hour, is too short for long texts on a laptop.
"""


def run_dataflow(
    source: Source,
    stages: Sequence[Stage],
    sink: Sink,
    block_mib: float,
    board: Any,
    deadline: float | None = None,
) -> None:
    """Run rows through stages.

    Args:
        source: The rows.
        stages: The stages, in order.
        sink: Destination of the rows.
        block_mib: Size of a block of rows in MiB.
        board: Board to which the workers report, see `open_board`.
        deadline: Time (`time.time()`) after which the first stage with a pool drops every row. Readers run ahead of the models
            by hundreds of blocks, which would take hours to score; later stages finish the rows that this stage has passed on.
            Dropped rows are not committed: the next run reads them.

    Raises:
        RagassayError: A stage raised it, see `ray_session.find_own_error`; or the stages do not fit together.
    """
    check_columns(stages, source.schema, sink.schema)
    first_pool = next((number for number, stage in enumerate(stages) if stage.replicas is not None), None)
    deadlines = [deadline if number == first_pool else None for number in range(len(stages))]
    if is_local():
        with clean_errors():
            run_local_dataflow(source, stages, sink, board, deadlines)
        return
    import ray
    from ray.data import DataContext

    context = DataContext.get_current()
    cpus = ray.cluster_resources()["CPU"]
    _configure(context, stages, block_mib, cpus)
    context.checkpoint_config = _checkpoint_config(sink)
    light = choose_light_cpus(cpus - sum_max_pool_cpus(stages))
    dataset = ray.data.read_datasource(_make_datasource(source), num_cpus=light)
    for number, (stage, stage_deadline) in enumerate(zip(stages, deadlines, strict=True)):
        dataset = dataset.map_batches(**map_batches_options(stage, light, board, number, stage_deadline))
    try:
        dataset.write_parquet(
            sink.output.path(sink.name),
            filesystem=sink.output.fs,
            partition_cols=list(sink.partition_keys) or None,
            ray_remote_args={"num_cpus": light},
            schema=sink.schema,
            compression="zstd",
        )
    except Exception as error:
        death = explain_death(error, stages, board)
        if death is not None:
            raise death from error
        raise
    finally:
        context.checkpoint_config = None


def _make_datasource(source: Source) -> Any:
    """Make a Ray datasource, with one read task per part."""
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    def make_task(part: Part, limit: int | None) -> Any:
        metadata = BlockMetadata(num_rows=part.rows, size_bytes=part.size, input_files=[part.path], exec_stats=None)
        return ReadTask(lambda: clean_items(part.read()), metadata, per_task_row_limit=limit)

    class PartsSource(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int | None:
            return source.size

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            return [make_task(part, per_task_row_limit) for part in source.parts]

    return PartsSource()


def _configure(context: Any, stages: Sequence[Stage], block_mib: float, cpus: float) -> None:
    """Set Ray Data's options for these stages and this number of logical CPUs."""
    from ray.data import ExecutionResources

    context.raise_original_map_exception = True  # our errors keep their class, see ray_session.find_own_error
    context.execution_no_progress_timeout_s = NO_PROGRESS_SECONDS
    context.target_max_block_size = int(block_mib * (1 << 20))
    # Ray reserves CPUs step by step, by default more than light steps need. The last step must get a CPU too.
    context.op_resource_reservation_ratio = max(0.0, min(0.5, 1 - sum_min_pool_cpus(stages) / cpus))
    workers = sum(stage.replicas.max for stage in stages if stage.replicas) + cpus
    context.execution_options.resource_limits = ExecutionResources.for_limits(
        object_store_memory=max(MIN_IN_FLIGHT_MIB, BLOCKS_PER_WORKER * block_mib * workers) * (1 << 20)
    )


def map_batches_options(
    stage: Stage, light: float = MIN_LIGHT_CPUS, board: Any = None, number: int = 0, deadline: float | None = None
) -> dict[str, Any]:
    """Return the arguments of Ray Data's `map_batches` for a stage.

    Args:
        stage: The stage.
        light: Logical CPUs of a task of a light stage.
        board: See `StageActor`.
        number: See `StageActor`.
        deadline: See `StageActor`; only for a stage with a pool.
    """
    from ray.data import ActorPoolStrategy

    whole_blocks = {"batch_size": None, "batch_format": "pyarrow", "zero_copy_batch": True}
    arguments = {"stage": stage, "board": board, "number": number}
    if stage.replicas is None:
        return {"fn": run_stage, "fn_kwargs": arguments, "num_cpus": light, **whole_blocks}
    pool = ActorPoolStrategy(
        min_size=stage.replicas.min,
        max_size=stage.replicas.max,
        max_tasks_in_flight_per_actor=3,
        enable_true_multi_threading=True,
        **_limit_calls(ActorPoolStrategy),
    )
    return {
        "fn": StageActor,
        "fn_constructor_kwargs": {**arguments, "deadline": deadline},
        "compute": pool,
        "max_restarts": stage.replicas.restarts,
        "max_task_retries": -1,  # a block waits for the next process; max_restarts limits their number
        **whole_blocks,
        **_actor_options(stage, stage.replicas),
    }


def _limit_calls(strategy: Any) -> dict[str, int]:
    """Allow two calls per actor: one tokenizes while the engine runs the other. Before Ray 2.59 there is no limit to set."""
    name = "max_concurrent_calls_per_actor"
    return {name: 2} if name in signature(strategy).parameters else {}


def _actor_options(stage: Stage, replicas: Replicas) -> dict[str, Any]:
    """Return the Ray options of one replica."""
    return {
        "num_cpus": replicas.num_cpus,
        "num_gpus": replicas.num_gpus or None,
        "runtime_env": {"env_vars": dict(stage.environment)},
    }


def _checkpoint_config(sink: Sink) -> Any:
    """Configure Ray Data to commit rows by `row_key` and to filter none: our readers skip committed rows."""
    from ray.data.checkpoint import CheckpointConfig

    return CheckpointConfig(
        id_column="row_key",
        checkpoint_path=sink.output.path(sink.checkpoint),
        override_filesystem=sink.output.fs,
        delete_checkpoint_on_success=False,  # the run deletes it when the manifest knows its rows, see jobs.run
        **_filter_nothing(CheckpointConfig),
    )


def _filter_nothing(config: Any) -> dict[str, type]:
    """Return the option that keeps Ray from loading the committed ids. Ray before 2.60 loads them, and finds none to filter."""
    if "checkpoint_manager_cls" not in signature(config).parameters:
        return {}
    from ray.data.checkpoint import CheckpointManager

    class NothingToFilter(CheckpointManager):  # type: ignore[misc]
        def load_checkpoint(self, data_file_dir: Any = None, data_file_filesystem: Any = None) -> tuple[None, int]:
            return None, 0

    return {"checkpoint_manager_cls": NothingToFilter}


def start_actor(stage: Stage) -> Any:
    """Start one replica of a stage outside a plan, as a Ray actor. It exports no metrics: metrics describe runs."""
    import ray

    assert stage.replicas is not None
    return ray.remote(StageActor).options(**_actor_options(stage, stage.replicas)).remote(stage, metrics=False)
