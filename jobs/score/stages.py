"""The stages of a job, in the order in which a row goes through them. A new one is a function or an actor and a line here."""

import os
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from ragassay.jobs.config import ANY, Job
from ragassay.jobs.input import Logs
from ragassay.jobs.input.types import may_hold_text
from ragassay.jobs.plan import Stage
from ragassay.jobs.resources import engine_environment, threads_of
from ragassay.jobs.score.engine_metrics import engine_counters
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.stages.detect import detect_batch
from ragassay.pipeline.stages.drop_text import PASSAGE_IDS, drop_texts
from ragassay.pipeline.stages.rerank import Reranker
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.slm import SlmScorer
from ragassay.pipeline.stages.split import split_batch
from ragassay.pipeline.stages.uncertainty import UncertaintyScorer
from ragassay.schemas.columns import passthrough_name


def stages(job: Job, frequencies: Callable[[], Frequencies] | None = None) -> list[Stage]:
    """The stages between reading and writing.

    Args:
        job: The job.
        frequencies: Gives the document frequencies of its contexts, which the detectors need when they run.
    """
    # The detectors stand behind the SLMs: a busy CPU must never keep an engine waiting for rows.
    return [
        split_stage(job),
        *rerank_stages(job),
        *slm_stages(job),
        *uncertainty_stages(job),
        *([detect_stage(job, frequencies)] if job.detectors else []),
    ]


def split_stage(job: Job) -> Stage:
    """Responses to sentences, and each row's language; `languages` of the job are settled, see `verdict.languages`."""
    splitter = (job.splitter.name, job.splitter.language)
    languages = None if job.languages == ANY else job.languages
    arguments = {"splitter": splitter, "question_needed": job.question_needed, "languages": languages, **_language_column(job)}
    return Stage("split", split_batch, arguments, judges=False)


def rerank_stages(job: Job) -> list[Stage]:
    """The order of the passages, if the job wants one."""
    if job.rerank is None:
        return []
    splitter = (job.splitter.name, job.splitter.language)
    arguments = {"rerank": job.rerank, "splitter": splitter, "threads": threads_of(job.rerank.engine, job.local_pools.values())}
    return [Stage(job.rerank.name, Reranker, arguments, job.rerank.replicas, engine_environment())]


def slm_stages(job: Job) -> list[Stage]:
    """Each SLM's log-probabilities."""
    return [slm_stage(job, slm, job.local_pools.values()) for slm in job.slms]


def slm_stage(job: Job, slm: Slm, pools: Iterable[Replicas]) -> Stage:
    """One SLM's log-probabilities; `pools` are those that run at once, see `threads_of`."""
    if slm.engine.SERVED:
        return Stage(slm.name, ServedScorer, {"slm": slm}, slm.replicas)
    splitter = (job.splitter.name, job.splitter.language)
    arguments = {"slm": slm, "splitter": splitter, "threads": threads_of(slm.local, pools), "metrics": engine_counters}
    if job.rerank:
        arguments["keep"] = job.rerank.keep
    return Stage(slm.name, SlmScorer, arguments, slm.replicas, engine_environment())


def uncertainty_stages(job: Job) -> list[Stage]:
    """The scores of uncertainty, a stage for those that are read together."""
    splitter = (job.splitter.name, job.splitter.language)
    return [
        Stage(
            members[0].name,
            UncertaintyScorer,
            {"members": members, "splitter": splitter, "threads": threads_of(members[0].engine, job.local_pools.values())},
            members[0].replicas,
            engine_environment(),
        )
        for members in job.readings
    ]


def detect_stage(job: Job, frequencies: Callable[[], Frequencies] | None) -> Stage:
    """The detectors' values and evidence."""
    arguments = {"language": job.splitter.language, "frequencies": frequencies, "threads": os.cpu_count() or 1}
    return Stage("detect", detect_counted, {"detectors": job.detectors, **arguments, **_language_column(job)})


def _language_column(job: Job) -> dict[str, str]:
    """Where rows say their language, under the name by which it is carried along."""
    return {} if job.splitter.column is None else {"language_column": passthrough_name(job.splitter.column)}


def drop_stages(job: Job, logs: Logs) -> list[Stage]:
    """No text of users behind it, if the job wants none in OUTPUT."""
    if job.drop_text is None:
        return []
    carried = set(carried_columns(job, logs).names)
    dropped = [name for name in logs.passthrough.names if name not in carried]
    arguments = {"dropped": dropped, "keep_passage_ids": PASSAGE_IDS in job.drop_text.keep}
    return [Stage("drop_text", drop_texts, arguments, judges=False)]


def carried_columns(job: Job, logs: Logs) -> pa.Schema:
    """The user's own columns that are written: where text is dropped, hive keys, what holds none, and what the job keeps.

    Raises:
        InputError: The job keeps a column that the logs do not have.
    """
    if job.drop_text is None:
        return logs.passthrough
    kept = {*job.drop_text.keep, *logs.partition_keys}
    unknown = sorted(kept - {PASSAGE_IDS, *logs.passthrough.names})
    if unknown and logs.files:  # without any, nothing has columns
        there = f"; they are {', '.join(logs.passthrough.names)}" if logs.passthrough.names else ": there are none"
        raise InputError(f"input {logs.uri}: drop_text.keep names {', '.join(unknown)}, no column that is carried along{there}")
    return pa.schema([field for field in logs.passthrough if field.name in kept or not may_hold_text(field.type)])


def detect_counted(table: pa.Table, frequencies: Callable[[], Frequencies], **arguments: Any) -> pa.Table:
    """`detect_batch`, once the frequencies are counted: engines start and score meanwhile."""
    return detect_batch(table, frequencies=frequencies(), **arguments)
