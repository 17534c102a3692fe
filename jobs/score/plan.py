"""Plan 1, `score`: logs -> sentences -> one pool of actors a SLM -> raw Parquet, resumable (Ray Data checkpoints)."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.score.checkpoint import CHECKPOINT, open_groups
from ragassay.jobs.score.datasource import open_rows
from ragassay.jobs.score.engine_metrics import engine_counters
from ragassay.jobs.storage import Folder
from ragassay.pipeline.contain import contain, fault_of
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.split import load_splitter, split
from ragassay.pipeline.stages.detect import detect_batch
from ragassay.pipeline.stages.slm import SlmScorer
from ragassay.schemas.columns import EVIDENCE, MEMBER, SPAN, USAGE, Status, raw_schema

LIGHT_CPUS = 0.25
"""Logical CPUs of the tasks that read, split and write: a fraction, so that SLM pools never leave them without a place."""

DRIVER_CPUS = 0.5
"""Logical CPUs of the tasks of the cheap steps, fit and finalize."""

BLOCKS_A_WORKER = 8
"""Blocks that may be under way, a replica or CPU: enough that nobody waits. Else readers fill half of Ray's memory."""

MIN_IN_FLIGHT_MIB = 256
"""Blocks of so many MiB may be under way in any case."""

NO_PROGRESS_SECONDS = 6 * 3600
"""Ray Data gives a run up after half an hour without a block; on a laptop one block of long texts can take longer."""


_Split = tuple[list[dict[str, Any]] | None, str, str | None]
"""Sentences of a row, null where it can't be scored; its status; and why."""


def needed_resources(job: Job, scoring: bool) -> tuple[float, float]:
    """Logical CPUs and GPUs without which a job could wait for itself for ever; without scoring, one CPU and no GPU."""
    if not scoring:
        return 1, 0
    return _pool_cpus(job) + 4 * LIGHT_CPUS, sum(slm.replicas.min * slm.replicas.num_gpus for slm in job.slms)


def _pool_cpus(job: Job) -> float:
    """Logical CPUs that the SLM pools take at least."""
    return sum(slm.replicas.min * slm.replicas.num_cpus for slm in job.slms)


def threads_of(slm: Slm, job: Job) -> int:
    """CPU threads of one replica: its own setting, else the cores shared among all replicas that run without a GPU."""
    replicas = sum(s.replicas.max for s in job.slms if s.replicas.num_gpus == 0)
    return slm.threads or max(1, (os.cpu_count() or 1) // max(1, replicas))


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


def split_batch(table: pa.Table, splitter: tuple[str, str], question_needed: bool) -> pa.Table:
    """Give each row its sentences, or the status that says why it has none; empty members and usage are added."""
    rows = table.select(["question", "context", "response", "status", "error"]).to_pylist()
    nlp = _nlp(*splitter)
    found: list[list[_Split]] = contain(
        len(rows),
        lambda some: _split_rows(rows[some], nlp, question_needed),
        lambda _, error: [(None, Status.ERROR.value, f"split: {fault_of(error)}")],
    )
    sentences, statuses, errors = zip(*chain.from_iterable(found), strict=True) if rows else ((), (), ())
    table = table.drop_columns(["status", "error"])
    for name, values, kind in (
        ("sentences", sentences, pa.list_(SPAN)),
        ("members", [None if spans is None else [] for spans in sentences], pa.list_(MEMBER)),
        ("evidence", [None] * len(rows), pa.list_(EVIDENCE)),
        ("usage", [None if spans is None else [] for spans in sentences], pa.list_(USAGE)),
        ("context_windows", [None] * len(rows), pa.int32()),
        ("status", statuses, pa.string()),
        ("error", errors, pa.string()),
    ):
        table = table.append_column(name, pa.array(values, type=kind))
    return table


def _split_rows(rows: Sequence[Mapping[str, Any]], nlp: Any, question_needed: bool) -> list[_Split]:
    faults = [(row["status"], row["error"]) if row["status"] != Status.OK else row_fault(row, question_needed) for row in rows]
    texts = ["" if fault else row["response"] for row, fault in zip(rows, faults, strict=True)]
    found: list[_Split] = []
    for text, spans, fault in zip(texts, split(nlp, texts), faults, strict=True):
        if fault:
            found.append((None, *fault))
        elif not spans:
            found.append((None, Status.EMPTY_RESPONSE.value, "the response has no word"))
        else:
            found.append(([{"text": text[a:b], "start": a, "end": b} for a, b in spans], Status.OK.value, None))
    return found


def row_fault(row: Mapping[str, Any], question_needed: bool) -> tuple[str, str] | None:
    """Why a row can't be scored, as (status, error); None where it can."""
    if question_needed and not (row["question"] or "").strip():
        return Status.NO_QUESTION.value, "the question is null or empty"
    if not any((passage or "").strip() for passage in row["context"] or []):
        return Status.NO_CONTEXT.value, "the context is null or empty"
    if row["response"] is None:
        return Status.NO_RESPONSE.value, "the response is null"
    return None


_loaded: dict[tuple[str, str], Any] = {}


def _nlp(name: str, language: str) -> Any:
    """The splitter of this worker process, loaded once."""
    if (name, language) not in _loaded:
        _loaded[name, language] = load_splitter(name, language)
    return _loaded[name, language]


def engine_environment() -> dict[str, str]:
    """Environment variables of the processes that hold engines."""
    from ragassay.pipeline.engines.vllm_engine import openmp_library
    from ragassay.pipeline.engines.weights import home

    environment = {"RAGASSAY_HOME": str(home()), "TOKENIZERS_PARALLELISM": "true"}
    library = openmp_library()
    if library:
        environment["LD_PRELOAD"] = library
    return environment


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
