"""The stages of a job, in the order of a row's way. A new one is a file in `pipeline/stages` and a line here."""

import os
from collections.abc import Callable, Iterable

import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.output import OutputConfig
from ragassay.jobs.config.splitting import ANY, SplittingConfig
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
        *([detect_stage(job, frequencies)] if job.members.detectors else []),
    ]


def split_stage(job: Job) -> Split:
    """Responses to sentences, and each row's language; the job's languages are settled, see `verdicts.languages`."""
    languages = None if job.splitting.languages == ANY else job.splitting.languages
    return Split(_splitter(job.splitting), job.members.need_question, _language_column(job.splitting), languages)


def rerank_stages(job: Job) -> list[Stage]:
    """The order of the passages, if the job wants one."""
    rerank = job.members.rerank
    if rerank is None:
        return []
    return [Reranker(rerank, _splitter(job.splitting), threads_of(rerank.engine, job.members.local_pools.values()))]


def slm_stages(job: Job) -> list[Stage]:
    """Each SLM's log-probabilities."""
    return [slm_stage(job, slm, job.members.local_pools.values()) for slm in job.members.slms]


def slm_stage(job: Job, slm: Slm, pools: Iterable[Replicas]) -> Stage:
    """One SLM's log-probabilities; `pools` are those that run at once, see `threads_of`."""
    if slm.engine.SERVED:
        return ServedScorer(slm)
    rerank = job.members.rerank
    return SlmScorer(slm, _splitter(job.splitting), threads_of(slm.local, pools), rerank.keep if rerank else None)


def uncertainty_stages(job: Job) -> list[Stage]:
    """The scores of uncertainty, a stage for those that are read together."""
    pools, splitter = job.members.local_pools.values(), _splitter(job.splitting)
    groups = job.members.reading_groups
    return [UncertaintyScorer(group, splitter, threads_of(group[0].engine, pools)) for group in groups]


def detect_stage(job: Job, frequencies: Callable[[], Frequencies] | None) -> Detect:
    """The detectors' values and evidence; engines start and score while the frequencies are counted."""
    return Detect(
        job.members.detectors, job.splitting.language, frequencies, os.cpu_count() or 1, _language_column(job.splitting)
    )


def _splitter(splitting: SplittingConfig) -> tuple[str, str]:
    return splitting.pipeline, splitting.language


def _language_column(splitting: SplittingConfig) -> str | None:
    """Where rows say their language, under the name by which it is carried along."""
    return None if splitting.language_column is None else passthrough_name(splitting.language_column)


def drop_stages(output: OutputConfig, logs: Logs) -> list[Stage]:
    """No text of users behind it, if the job wants none in OUTPUT."""
    if output.drop_text is None:
        return []
    carried = set(carried_columns(output, logs).names)
    dropped = tuple(name for name in logs.passthrough.names if name not in carried)
    return [DropText(dropped, PASSAGE_IDS in output.drop_text.keep)]


def carried_columns(output: OutputConfig, logs: Logs) -> pa.Schema:
    """The user's own columns that are written: where text is dropped, hive keys, what holds none, and what the job keeps.

    Raises:
        InputError: The job keeps a column that the logs do not have.
    """
    if output.drop_text is None:
        return logs.passthrough
    kept = {*output.drop_text.keep, *logs.partition_keys}
    unknown = sorted(kept - {PASSAGE_IDS, *logs.passthrough.names})
    if unknown and logs.files:  # without any, nothing has columns
        there = f"; they are {', '.join(logs.passthrough.names)}" if logs.passthrough.names else ": there are none"
        raise InputError(errors.UNKNOWN_KEPT_COLUMN, uri=logs.uri, columns=", ".join(unknown), known=there)
    return pa.schema([field for field in logs.passthrough if field.name in kept or not may_hold_text(field.type)])
