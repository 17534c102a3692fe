"""Put sample and trial together: what each step of a job will take, with the warnings that a careful engineer would give."""

import os
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.verdict import DEFAULT_QUANTILE, NONE
from ragassay.jobs.forecast.count import EXPLAINED, NOTHING, Asked, Counted
from ragassay.jobs.forecast.trial import NOT_TRIED, Trial
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.progress.bar import format_duration
from ragassay.jobs.verdicts.bundled_calibration import is_fitted_for, load_bundled_calibration
from ragassay.pipeline.reasoning.config import Price

RESAMPLES = 400
LONG_RUN = 1200.0
"""Seconds: twice what the gain of compiled engines takes to pay for their start (docs/background/measurements.md)."""
SMALL_FILE_ROWS = 1_000
MANY_FILES = 64
SKEW = 5.0
MANY = 0.01

DYNAMIC_SHARE = 0.5
"""Share that a dynamic threshold takes where values lie alike above and below their mean; it shows only in the run."""

SHARES = (0.05, 0.2, 0.5)
"""Shares of the sentences to price for a job whose threshold is a value: how many it flags shows only in the run."""

BATCH = 1_000
"""Flagged sentences of the line that depends on no share."""


@dataclass(frozen=True)
class Forecast:
    """What a step of a job will take, or the part of one model in it.

    Attributes:
        name: The step, or the model's part.
        rows: Responses.
        sentences: Their sentences.
        sampled: Rows that were looked at.
        asked: What models are asked.
        interval: 95 % interval of the tokens to compute, which are counted by the blocks of the prefix cache.
        start_up: Seconds here until engines can be asked.
        rate: Tokens that one replica of the model computes here a second.
        seconds: Seconds here, start-up included; None where nothing was tried.
        price: What tokens cost; None leaves costs out.
        notes: In words: what it is about, or warnings.
    """

    name: str
    rows: float
    sentences: float
    sampled: int
    asked: Asked
    interval: tuple[float, float] = (0, 0)
    start_up: float = 0
    rate: float = 0
    seconds: float | None = None
    price: Price | None = None
    notes: tuple[str, ...] = ()

    @property
    def dollars(self) -> tuple[float, float] | None:
        """US dollars with usual answers, and with the longest; None without a price."""
        if self.price is None:
            return None
        return self.price.compute_cost(self.asked.tokens, self.asked.answers), self.price.compute_cost(
            self.asked.tokens, self.asked.most_answers
        )


def forecast_run(
    job: Job, logs: Logs, counted: Sequence[Counted], trials: Mapping[str, Trial], before: float = 0, other_seconds: float = 0
) -> list[Forecast]:
    """Extrapolate a sample to the log, by rows.

    The pools start and work side by side, so the slowest sets the pace; a block passes them in turn, so with few blocks the
    others add theirs.

    Args:
        job: The job.
        logs: The input.
        counted: The sample's stretches.
        trials: How each engine did; empty where none was tried.
        before: Seconds that imports, checks and Ray take before engines start.
        other_seconds: CPU seconds that split and detectors took for the sample.

    Returns:
        Scoring as a whole, each of its models, and, as far as the job has them, the cascade and explaining.
    """
    rows = sum(file.rows or 0 for file in logs.files)
    members, policy, explainer = job.members, job.escalation.policy, job.escalation.explainer
    names = [
        *(["rerank"] if members.rerank else []),
        *(slm.name for slm in members.slms),
        *(group[0].name for group in members.reading_groups),
    ]
    models = [_extrapolate(name, counted, rows, trials) for name in names]
    whole = replace(
        _extrapolate("score", counted, rows),
        rows=rows,
        asked=Asked.total([model.asked for model in models]),
        notes=(*_warnings_of_files(logs.files), *_warnings_of_rows(job, counted)),
    )
    busy = [model.seconds - model.start_up for model in models if model.seconds is not None]
    if busy or not models:
        factor, slowest = rows / whole.sampled, max(busy, default=0)
        start_up = before + max((model.start_up for model in models), default=0)
        blocks = max(len(logs.files), round(factor * sum(part.chars for part in counted) / (job.runtime.block_mib * (1 << 20))))
        seconds = start_up + factor * other_seconds / (os.cpu_count() or 1) + slowest + (sum(busy) - slowest) / blocks
        whole = replace(whole, start_up=start_up, seconds=seconds)
    forecasts = [whole, *models]
    if policy and whole.sentences:
        share, name, why = policy.share, policy.judge.name, "of those that can be scored"
        if share is None:
            share, why = DYNAMIC_SHARE, f"if the values of {policy.when} lie alike above and below their mean"
        part = _extrapolate(name, counted, rows, trials, share, policy.price)
        about = f"about {rough(part.rows)} responses ({100 * share:g}% {why}) with {rough(part.sentences)} sentences, to {name}"
        forecasts.append(replace(part, name="escalate", notes=(about,)))
    if explainer and whole.sentences:
        quantile = flagged_share(job)
        why = "of the sentences, " + ("if it is that many" if quantile is None else "as of the responses")
        for share in SHARES if quantile is None else (quantile,):
            part = _extrapolate(EXPLAINED, counted, rows, share=share, price=explainer.price)
            about = f"about {rough(part.sentences)} flagged sentences ({100 * share:g}% {why})"
            forecasts.append(replace(part, name="explain", notes=(about,)))
        about = f"{BATCH:,} flagged sentences, however many there are; `ragassay explain OUTPUT --sample 100` measures it"
        part = _extrapolate(EXPLAINED, counted, rows, share=BATCH / whole.sentences, price=explainer.price)
        forecasts.append(replace(part, name="explain", notes=(about,)))
    return forecasts


def _extrapolate(
    name: str,
    counted: Sequence[Counted],
    rows: int,
    trials: Mapping[str, Trial] | None = None,
    share: float = 1,
    price: Price | None = None,
) -> Forecast:
    """What a model is asked about a share of the log's responses, if they are as those of the sample."""
    asked, sizes = [part.asked.get(name, NOTHING) for part in counted], [part.rows for part in counted]
    sampled, wanted = sum(sizes), share * rows
    whole, trial = Asked.total(asked, wanted / sampled), (trials or {}).get(name, NOT_TRIED)
    rate = trial.tokens_per_second
    return Forecast(
        name,
        rows=wanted / sampled * sum(part.responses for part in counted),
        sentences=wanted / sampled * sum(part.sentences for part in counted),
        sampled=sampled,
        asked=whole,
        interval=_interval([part.computed for part in asked], sizes, wanted) if rows > sampled else (0, 0),
        start_up=trial.start_up,
        rate=rate,
        seconds=None if trial is NOT_TRIED else trial.start_up + (whole.computed / rate / trial.replicas if rate else 0),
        price=price,
    )


def flagged_share(job: Job) -> float | None:
    """Share of the responses that will be flagged; None where a value decides: the job's, or a calibration's."""
    config = job.verdict
    if config.threshold.is_set:
        return config.threshold.quantile
    fitted = config.calibration != NONE and is_fitted_for(load_bundled_calibration(), job.members, make_fingerprint(job))
    return None if fitted or config.calibration_file is not None else DEFAULT_QUANTILE


def _interval(tokens: Sequence[float], rows: Sequence[int], total: float) -> tuple[float, float]:
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
    for slm in job.members.slms:
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


def forecast_lines(job: Job, forecasts: Sequence[Forecast]) -> list[tuple[str, str]]:
    """Lines to print, each a name and a text.

    Args:
        job: The job.
        forecasts: Scoring as a whole, its models, and the steps after it.
    """
    whole, *parts = forecasts
    lines = [("looked at", f"{whole.sampled:,} rows"), ("sentences", f"{whole.sentences:,.0f}")]
    lines += [(part.name if part.notes else f"tokens {part.name}", _text(part)) for part in parts]
    if whole.seconds is not None:
        lines.append(("time here", f"{format_duration(whole.seconds)}, start-up of {format_duration(whole.start_up)} included"))
        eager = [
            slm.name
            for slm in job.members.slms
            if not slm.engine.IS_SERVED and slm.local_engine.can_gain_from_compiling(slm.replicas.num_gpus)
        ]
        if eager and whole.seconds > LONG_RUN:
            text = f"a run this long may gain by it: plan again with enforce_eager: false for {', '.join(eager)}"
            lines.append(("compile", text))
    return lines


def _text(forecast: Forecast) -> str:
    """What is asked, how long it takes and what it costs."""
    asked, pieces = forecast.asked, list(forecast.notes)
    if asked.computed:
        each, (low, high) = max(asked.prompts, 1), forecast.interval
        spread = f" ({low:,.0f} to {high:,.0f})" if low < high else ""
        pieces.append(
            f"{asked.computed:,.0f}{spread} to compute, {asked.tokens:,.0f} with all that is shared "
            f"({1 - asked.computed / asked.tokens:.0%} reused), {asked.prompts:,.0f} prompts: "
            f"{asked.computed / each:.0f} tokens each, {asked.distinct / each:.0f} if all that is shared were computed once"
        )
    elif asked.answers:
        most = f" (at most {rough(asked.most_answers)} of answers)" if asked.most_answers > asked.answers else ""
        requests = f"{rough(asked.prompts)} requests, by 4 bytes a token; how long they take is not told here"
        pieces.append(f"{rough(asked.tokens)} + {rough(asked.answers)} tokens{most} of {requests}")
    else:
        pieces.append(f"{asked.tokens:,.0f} with all that is shared; how long they take is not told here")
    if forecast.rate and forecast.seconds is not None:
        pieces.append(
            f"{format_duration(forecast.seconds)} here, start-up included, at {forecast.rate:,.0f} tokens/s a replica"
        )
    if forecast.dollars:
        usual, most = map(_money, forecast.dollars)
        pieces.append(f"about {usual}" + (f", at most {most}" if most != usual else ""))
    return "; ".join(pieces)


def rough(number: float) -> str:
    """Three figures: an estimate has no more."""
    return f"{float(f'{number:.3g}'):,.0f}"


def _money(dollars: float) -> str:
    return f"{dollars:,.2f} USD" if dollars >= 0.1 else f"{dollars:.4f} USD"
