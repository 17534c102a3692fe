"""Put metadata, sample and trial together: what a job will take, with the warnings that a careful engineer would give."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ragassay.jobs.config import Job
from ragassay.jobs.forecast.escalate import EscalateForecast
from ragassay.jobs.forecast.explain import ExplainForecast
from ragassay.jobs.forecast.tokens import Counted
from ragassay.jobs.forecast.trial import Trial
from ragassay.jobs.input import LogFile, Logs

RESAMPLES = 400
LONG_RUN = 1200.0
"""Seconds: twice what the gain of compiled engines takes to pay for their start (docs/speed.md)."""
SMALL_FILE_ROWS = 1_000
MANY_FILES = 64
SKEW = 5.0
MANY = 0.01


@dataclass(frozen=True)
class SlmForecast:
    """What one SLM will be asked, over the whole log; tokens_low and tokens_high are a 95 % interval of tokens_computed, which
    counts by the blocks of the prefix cache; tokens_distinct is what would be left if all that is shared were computed once."""

    prompts: float
    tokens: float
    tokens_computed: float
    tokens_low: float
    tokens_high: float
    tokens_distinct: float


@dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes:
        rows: Rows of the log, by its footers.
        sampled: Rows that were looked at.
        sentences: Sentences.
        chars: Characters of questions, contexts and responses.
        slms: What each SLM will be asked, and what each model of `uncertainty` reads, by the first of its members.
        other_seconds: CPU seconds of everything that is not an SLM: split and detectors.
        warnings: In words.
        escalate: What the cascade will take; None where the job has none.
        reranked: Tokens of the prompts that put passages in order; None where the job leaves them as they are.
        explain: What explaining the flagged sentences will take; None where the job explains nothing.
    """

    rows: int
    sampled: int
    sentences: float
    chars: float
    slms: dict[str, SlmForecast]
    other_seconds: float
    warnings: list[str] = field(default_factory=list)
    escalate: EscalateForecast | None = None
    reranked: float | None = None
    explain: ExplainForecast | None = None


def forecast(job: Job, logs: Logs, counted: Sequence[Counted], other_seconds: float) -> Forecast:
    """Extrapolate a sample to the log, by rows.

    Args:
        job: The job.
        logs: The input.
        counted: The sample's stretches.
        other_seconds: CPU seconds that split and detectors took for the sample.
    """
    rows = sum(file.rows or 0 for file in logs.files)
    sampled = sum(part.rows for part in counted)
    factor = rows / sampled
    slms = {}
    for name in [slm.name for slm in job.slms] + [members[0].name for members in job.readings]:
        asked = [part.asked[name] for part in counted]
        computed = factor * sum(a.computed for a in asked)
        low, high = computed, computed
        if factor > 1:
            low, high = _interval([a.computed for a in asked], [part.rows for part in counted], rows)
        slms[name] = SlmForecast(
            prompts=factor * sum(a.prompts for a in asked),
            tokens=factor * sum(a.tokens for a in asked),
            tokens_computed=computed,
            tokens_distinct=factor * sum(a.distinct for a in asked),
            tokens_low=low,
            tokens_high=high,
        )
    return Forecast(
        rows=rows,
        sampled=sampled,
        sentences=factor * sum(part.sentences for part in counted),
        chars=factor * sum(part.chars for part in counted),
        slms=slms,
        other_seconds=factor * other_seconds,
        reranked=factor * sum(part.reranked for part in counted) if job.rerank else None,
        warnings=[*_warnings_of_files(logs.files), *_warnings_of_rows(job, counted)],
    )


def start_up(before: float, trials: dict[str, Trial]) -> float:
    """Seconds until the last of the engines, which start side by side, can be asked; `before` of them until they start."""
    return before + max((trial.start_up for trial in trials.values()), default=0.0)


def seconds_here(job: Job, told: Forecast, before: float, trials: dict[str, Trial], blocks: int, cpus: int) -> float:
    """Wall time of `ragassay score` on this machine.

    The pools work side by side, so the slowest sets the pace; a block passes them in turn, so with few blocks the others
    add theirs.

    Args:
        job: The job.
        told: What it will be asked.
        before: Seconds that imports, checks and Ray take before engines start.
        trials: How each engine did.
        blocks: Blocks that the log travels in.
        cpus: Cores.
    """
    fixed = start_up(before, trials) + told.other_seconds / cpus
    busy = [
        told.slms[name].tokens_computed / trials[name].tokens_per_second / replicas.max
        for name, replicas in job.local_pools.items()
        if name in told.slms and name in trials and trials[name].tokens_per_second
    ]
    if not busy:
        return fixed
    return fixed + max(busy) + (sum(busy) - max(busy)) / blocks


def seconds_on_gpus(told: Forecast, gpus: int, tokens_per_second: float) -> float:
    """Wall time, without start-up, on GPUs that each compute so many tokens a second."""
    return sum(slm.tokens_computed for slm in told.slms.values()) / (gpus * tokens_per_second)


def worth_compiling(job: Job, seconds: float) -> list[str]:
    """SLMs that run uncompiled on CPU, in a job that takes long enough for compilation to pay."""
    eager = [slm.name for slm in job.slms if not slm.engine.SERVED and slm.local.gains_by_compiling(slm.replicas.num_gpus)]
    return eager if seconds > LONG_RUN else []


def _interval(tokens: Sequence[int], rows: Sequence[int], total: int) -> tuple[float, float]:
    """Bootstrap interval of the log's tokens, over the stretches."""
    rng = np.random.default_rng(0)
    picks = rng.integers(len(tokens), size=(RESAMPLES, len(tokens)))
    values = np.array(tokens)[picks].sum(axis=1) / np.array(rows)[picks].sum(axis=1) * total
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _warnings_of_files(files: Sequence[LogFile]) -> list[str]:
    sizes = [file.rows or 0 for file in files]
    warnings = []
    if len(files) > MANY_FILES and statistics.median(sizes) < SMALL_FILE_ROWS:
        warnings.append(
            f"{len(files):,} files with {statistics.median(sizes):,.0f} rows in the middle: listing and opening them takes "
            f"longer than it should; write fewer, larger ones"
        )
    partitions = Counter[str]()
    for file, rows in zip(files, sizes, strict=True):
        partitions[file.partition_path] += rows
    middle = statistics.median(partitions.values())
    name, most = partitions.most_common(1)[0]
    if len(partitions) > 1 and most > SKEW * middle:
        warnings.append(f"partition {name} has {most:,} rows, {most / max(1, middle):.0f} times the middle one")
    largest = max(files, key=lambda file: (file.rows or 0) / max(1, file.row_groups))
    group = (largest.rows or 0) / max(1, largest.row_groups)
    if group > SKEW * 100_000:
        warnings.append(f"{largest.path} has row groups of {group:,.0f} rows: one task reads each; write smaller ones")
    return warnings


def _warnings_of_rows(job: Job, counted: Sequence[Counted]) -> list[str]:
    rows = sum(part.rows for part in counted)
    statuses = sum((part.statuses for part in counted), Counter[str]())
    warnings = [
        f"{count / rows:.1%} of the rows looked at can't be scored: {status}" for status, count in statuses.most_common()
    ]
    for slm in job.slms:
        windowed = sum(part.asked[slm.name].windowed for part in counted)
        too_long = sum(part.asked[slm.name].too_long for part in counted)
        if windowed > MANY * rows:
            warnings.append(
                f"{slm.name}: {windowed / rows:.1%} of the rows have a context longer than its window, and are judged window "
                "by window: a larger max_model_len would cost less, if the model has one"
            )
        if too_long:
            warnings.append(f"{slm.name}: {too_long / rows:.1%} of the rows leave no room for a context, and can't be scored")
    repeated = sum(part.repeated for part in counted)
    if repeated > MANY * rows:
        warnings.append(f"{repeated / rows:.1%} of the rows looked at repeat an earlier one; they are scored once and copied")
    return warnings
