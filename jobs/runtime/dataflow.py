"""A plan: rows from a source, through stages, into a sink; what is committed is not done again when it is run anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.runtime.deaths import explain_death
from ragassay.jobs.runtime.resources import LEAST_LIGHT_CPUS, LIGHT_AT_ONCE, light_cpus
from ragassay.jobs.runtime.stage_actor import StageActor, run_stage
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages.stage import Stage, check_columns

BLOCKS_A_WORKER = 8
"""Blocks that may be under way, a replica or CPU: enough that nobody waits. Else readers fill half of Ray's memory."""

MIN_IN_FLIGHT_MIB = 256
"""Blocks of so many MiB may be under way in any case."""

NO_PROGRESS_SECONDS = 6 * 3600
"""Ray Data gives a run up after half an hour without a block; on a laptop one block of long texts can take longer."""


@dataclass(frozen=True)
class Sink:
    """Where rows go: partitioned Parquet in a folder of an output.

    Attributes:
        output: The output folder.
        name: The folder in it.
        partition_keys: Columns whose values become hive folders.
        schema: Of the files.
        checkpoint: Folder of the output in which Ray Data commits rows, by their `row_key`. The source has to leave out what
            is committed there, and whoever runs the plan deletes it when all is done.
    """

    output: Folder
    name: str
    partition_keys: Sequence[str]
    schema: pa.Schema
    checkpoint: str


def run_plan(
    source: Any,
    stages: Sequence[Stage],
    sink: Sink,
    block_mib: float,
    board: Any,
    deadline: float | None = None,
) -> None:
    """Run rows through stages.

    Args:
        source: A Ray datasource; its attribute `schema` is that of its rows.
        stages: In order.
        sink: Where they go.
        block_mib: Size of a block of rows.
        board: Handle of the board to which the workers report, see `open_board`.
        deadline: Time (`time.time()`) from which on the first stage with a pool lets no row in. Readers run ahead of the models
            by hundreds of blocks, which alone would take hours; later stages finish what that stage has begun. Rows that are
            dropped are not committed: the next run reads them.

    Raises:
        RagassayError: A stage raised it, see `ray_session.our_error`; or the stages do not fit together.
    """
    check_columns(stages, source.schema, sink.schema)
    import ray
    from ray.data import DataContext

    context = DataContext.get_current()
    cpus = ray.cluster_resources()["CPU"]
    _settle(context, stages, block_mib, cpus)
    context.checkpoint_config = _commits(sink)
    light = light_cpus(cpus - grown_cpus(stages))
    dataset = ray.data.read_datasource(source, num_cpus=light)
    first_pool = next((number for number, stage in enumerate(stages) if stage.replicas is not None), None)
    for number, stage in enumerate(stages):
        ends = deadline if number == first_pool else None
        dataset = dataset.map_batches(**map_arguments(stage, light, board, number, ends))
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


def _settle(context: Any, stages: Sequence[Stage], block_mib: float, cpus: float) -> None:
    """Ray Data's settings for these stages on so many logical CPUs."""
    from ray.data import ExecutionResources

    context.raise_original_map_exception = True  # ours come back as what they are, see ray_session.our_error
    context.execution_no_progress_timeout_s = NO_PROGRESS_SECONDS
    context.target_max_block_size = int(block_mib * (1 << 20))
    # The last step must find a CPU as well: Ray reserves from the first on, and by default more than light steps need.
    context.op_resource_reservation_ratio = max(0.0, min(0.5, 1 - pool_cpus(stages) / cpus))
    workers = sum(stage.replicas.max for stage in stages if stage.replicas) + cpus
    context.execution_options.resource_limits = ExecutionResources.for_limits(
        object_store_memory=max(MIN_IN_FLIGHT_MIB, BLOCKS_A_WORKER * block_mib * workers) * (1 << 20)
    )


def map_arguments(
    stage: Stage, light: float = LEAST_LIGHT_CPUS, board: Any = None, number: int = 0, deadline: float | None = None
) -> dict[str, Any]:
    """Arguments of Ray Data's `map_batches` for a stage.

    Args:
        stage: The stage.
        light: Logical CPUs of a task of a light stage.
        board: See `StageActor`.
        number: See `StageActor`.
        deadline: See `StageActor`; for a stage with a pool.
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
        max_concurrent_calls_per_actor=2,  # one tokenises while the engine is busy with the other
        enable_true_multi_threading=True,
    )
    return {
        "fn": StageActor,
        "fn_constructor_kwargs": {**arguments, "deadline": deadline},
        "compute": pool,
        "max_restarts": stage.replicas.restarts,
        "max_task_retries": -1,  # a block waits for the next process; how many there may be is said above
        **whole_blocks,
        **_actor_options(stage, stage.replicas),
    }


def _actor_options(stage: Stage, replicas: Replicas) -> dict[str, Any]:
    """What Ray is told of one replica."""
    return {
        "num_cpus": replicas.num_cpus,
        "num_gpus": replicas.num_gpus or None,
        "runtime_env": {"env_vars": dict(stage.environment)},
    }


def _commits(sink: Sink) -> Any:
    """Ray Data commits rows by `row_key`; what is committed is not loaded by it, since readers leave it out."""
    from ray.data.checkpoint import CheckpointConfig, CheckpointManager

    class NothingToFilter(CheckpointManager):  # type: ignore[misc]
        def load_checkpoint(self, data_file_dir: Any = None, data_file_filesystem: Any = None) -> tuple[None, int]:
            return None, 0

    return CheckpointConfig(
        id_column="row_key",
        checkpoint_path=sink.output.path(sink.checkpoint),
        override_filesystem=sink.output.fs,
        delete_checkpoint_on_success=False,  # only the manifest ends a run; see jobs.run
        checkpoint_manager_cls=NothingToFilter,
    )


def start_actor(stage: Stage) -> Any:
    """One replica of a stage, outside a plan, as a Ray actor without metrics, which are of runs."""
    import ray

    assert stage.replicas is not None
    return ray.remote(StageActor).options(**_actor_options(stage, stage.replicas)).remote(stage, metrics=False)


def pool_cpus(stages: Sequence[Stage]) -> float:
    """Logical CPUs that the actor pools take at least."""
    return sum(stage.replicas.min * stage.replicas.num_cpus for stage in stages if stage.replicas)


def grown_cpus(stages: Sequence[Stage]) -> float:
    """Logical CPUs that they take at most."""
    return sum(stage.replicas.max * stage.replicas.num_cpus for stage in stages if stage.replicas)


def needed_resources(stages: Sequence[Stage]) -> tuple[float, float]:
    """Logical CPUs and GPUs without which a plan could wait for itself for ever."""
    gpus = sum(stage.replicas.min * stage.replicas.num_gpus for stage in stages if stage.replicas)
    return pool_cpus(stages) + LIGHT_AT_ONCE * LEAST_LIGHT_CPUS, gpus
