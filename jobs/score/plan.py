"""Plan 1, `score`: logs -> sentences -> one pool of actors a SLM -> raw Parquet, resumable (Ray Data checkpoints)."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from ragassay.jobs.config import Job
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.resources import LIGHT_CPUS, _pool_cpus, engine_environment, threads_of
from ragassay.jobs.score.checkpoint import CHECKPOINT, open_groups
from ragassay.jobs.score.datasource import open_rows
from ragassay.jobs.score.engine_metrics import engine_counters
from ragassay.jobs.storage import Folder
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.stages.detect import detect_batch
from ragassay.pipeline.stages.slm import SlmScorer
from ragassay.pipeline.stages.split import split_batch
from ragassay.schemas.columns import raw_schema

BLOCKS_A_WORKER = 8
"""Blocks that may be under way, a replica or CPU: enough that nobody waits. Else readers fill half of Ray's memory."""

MIN_IN_FLIGHT_MIB = 256
"""Blocks of so many MiB may be under way in any case."""

NO_PROGRESS_SECONDS = 6 * 3600
"""Ray Data gives a run up after half an hour without a block; on a laptop one block of long texts can take longer."""


def score_files(
    job: Job,
    logs: Logs,
    files: Mapping[int, LogFile],
    output: Folder,
    *,
    question_needed: bool,
    frequencies: Frequencies | None,
) -> None:
    """Score files and write their rows to `raw/`, one row a response, partitioned as the input.

    Rows that an earlier, broken run has committed are not scored again.

    Args:
        job: The job.
        logs: The input.
        files: Number in the manifest -> file to score.
        output: The output folder.
        question_needed: Whether a row without a question can't be scored.
        frequencies: Document frequencies, if there are detectors.
    """
    import ray
    from ray.data import ActorPoolStrategy, DataContext, ExecutionResources

    output.fs.create_dir(output.path("raw"), recursive=True)
    groups = open_groups(output, logs.fs, files)
    if not any(groups.values()):
        return
    context = DataContext.get_current()
    context.raise_original_map_exception = True  # ours come back as what they are, see ray_session.our_error
    context.execution_no_progress_timeout_s = NO_PROGRESS_SECONDS
    context.target_max_block_size = int(job.block_mib * (1 << 20))
    cpus = ray.cluster_resources()["CPU"]
    # The last step must find a CPU as well: Ray reserves from the first on, and by default more than light steps need.
    context.op_resource_reservation_ratio = max(0.0, min(0.5, 1 - _pool_cpus(job) / cpus))
    workers = sum(slm.replicas.max for slm in job.slms) + cpus
    context.execution_options.resource_limits = ExecutionResources.for_limits(
        object_store_memory=max(MIN_IN_FLIGHT_MIB, BLOCKS_A_WORKER * job.block_mib * workers) * (1 << 20)
    )
    context.checkpoint_config = _checkpoint(output)
    dataset = ray.data.read_datasource(open_rows(job, logs, files, groups), num_cpus=LIGHT_CPUS)
    dataset = dataset.map_batches(
        partial(split_batch, splitter=(job.splitter.name, job.splitter.language), question_needed=question_needed),
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        num_cpus=LIGHT_CPUS,
    )
    for slm in job.slms:
        dataset = dataset.map_batches(
            SlmScorer,
            fn_constructor_kwargs={
                "slm": slm,
                "splitter": (job.splitter.name, job.splitter.language),
                "threads": threads_of(slm, job),
                "metrics": engine_counters,
            },
            batch_size=None,
            batch_format="pyarrow",
            zero_copy_batch=True,
            compute=ActorPoolStrategy(
                min_size=slm.replicas.min,
                max_size=slm.replicas.max,
                max_tasks_in_flight_per_actor=3,
                max_concurrent_calls_per_actor=2,  # one tokenises while the engine is busy with the other
                enable_true_multi_threading=True,
            ),
            num_cpus=slm.replicas.num_cpus,
            num_gpus=slm.replicas.num_gpus or None,
            runtime_env={"env_vars": engine_environment()},
        )
    if frequencies is not None:  # behind the SLMs: a busy CPU must never keep an engine waiting for rows
        dataset = dataset.map_batches(
            detect_batch,
            fn_kwargs={
                "detectors": job.detectors,
                "language": job.splitter.language,
                "frequencies": frequencies,
                "threads": os.cpu_count() or 1,
            },
            batch_size=None,
            batch_format="pyarrow",
            zero_copy_batch=True,
            num_cpus=LIGHT_CPUS,
        )
    try:
        dataset.write_parquet(
            output.path("raw"),
            filesystem=output.fs,
            partition_cols=logs.partition_keys or None,
            ray_remote_args={"num_cpus": LIGHT_CPUS},
            schema=raw_schema(logs.passthrough),
            compression="zstd",
        )
    finally:
        context.checkpoint_config = None


def _checkpoint(output: Folder) -> Any:
    """Ray Data commits rows by `row_key`; what is committed is not loaded by it, since readers leave it out."""
    from ray.data.checkpoint import CheckpointConfig, CheckpointManager

    class NothingToFilter(CheckpointManager):  # type: ignore[misc]
        def load_checkpoint(self, data_file_dir: Any = None, data_file_filesystem: Any = None) -> tuple[None, int]:
            return None, 0

    return CheckpointConfig(
        id_column="row_key",
        checkpoint_path=output.path(CHECKPOINT),
        override_filesystem=output.fs,
        delete_checkpoint_on_success=False,  # only the manifest ends a run; see jobs.run
        checkpoint_manager_cls=NothingToFilter,
    )
