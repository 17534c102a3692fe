"""The stages of a job, in the order of a row's way. A new one is a file in `pipeline/stages` and a line here."""

import os
from collections.abc import Callable, Iterable

import pyarrow as pa

from ragassay.jobs.config.job import ANY, Job
from ragassay.jobs.input import Logs
from ragassay.jobs.input.types import may_hold_text
from ragassay.jobs.runtime.resources import threads_of
from ragassay.jobs.scoring import errors
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.stages.detect import Detect
from ragassay.pipeline.stages.drop_text import PASSAGE_IDS, DropText
from ragassay.pipeline.stages.rerank import Reranker
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.slm import SlmScorer
from ragassay.pipeline.stages.split import Split
from ragassay.pipeline.stages.stage import Stage
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


def split_stage(job: Job) -> Split:
    """Responses to sentences, and each row's language; `languages` of the job are settled, see `verdict.languages`."""
    languages = None if job.languages == ANY else job.languages
    return Split(_splitter(job), job.question_needed, _language_column(job), languages)


def rerank_stages(job: Job) -> list[Stage]:
    """The order of the passages, if the job wants one."""
    if job.rerank is None:
        return []
    return [Reranker(job.rerank, _splitter(job), threads_of(job.rerank.engine, job.local_pools.values()))]


def slm_stages(job: Job) -> list[Stage]:
    """Each SLM's log-probabilities."""
    return [slm_stage(job, slm, job.local_pools.values()) for slm in job.slms]


def slm_stage(job: Job, slm: Slm, pools: Iterable[Replicas]) -> Stage:
    """One SLM's log-probabilities; `pools` are those that run at once, see `threads_of`."""
    if slm.engine.SERVED:
        return ServedScorer(slm)
    return SlmScorer(slm, _splitter(job), threads_of(slm.local, pools), job.rerank.keep if job.rerank else None)


def uncertainty_stages(job: Job) -> list[Stage]:
    """The scores of uncertainty, a stage for those that are read together."""
    pools = job.local_pools.values()
    return [UncertaintyScorer(members, _splitter(job), threads_of(members[0].engine, pools)) for members in job.readings]


def detect_stage(job: Job, frequencies: Callable[[], Frequencies] | None) -> Detect:
    """The detectors' values and evidence; engines start and score while the frequencies are counted."""
    return Detect(job.detectors, job.splitter.language, frequencies, os.cpu_count() or 1, _language_column(job))


def _splitter(job: Job) -> tuple[str, str]:
    return job.splitter.name, job.splitter.language


def _language_column(job: Job) -> str | None:
    """Where rows say their language, under the name by which it is carried along."""
    return None if job.splitter.column is None else passthrough_name(job.splitter.column)


def drop_stages(job: Job, logs: Logs) -> list[Stage]:
    """No text of users behind it, if the job wants none in OUTPUT."""
    if job.drop_text is None:
        return []
    carried = set(carried_columns(job, logs).names)
    dropped = tuple(name for name in logs.passthrough.names if name not in carried)
    return [DropText(dropped, PASSAGE_IDS in job.drop_text.keep)]


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
        raise InputError(errors.UNKNOWN_KEPT_COLUMN, uri=logs.uri, columns=", ".join(unknown), known=there)
    return pa.schema([field for field in logs.passthrough if field.name in kept or not may_hold_text(field.type)])
