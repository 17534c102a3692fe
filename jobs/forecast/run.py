"""`ragassay plan`: look at an input, try the engines, and print what the job will take."""

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import pyarrow as pa
from rich.console import Console

from ragassay.jobs.config import Job, with_dtypes
from ragassay.jobs.forecast.escalate import escalate_lines, forecast_escalate
from ragassay.jobs.forecast.estimate import Forecast, forecast, seconds_here, seconds_on_gpus, start_up, worth_compiling
from ragassay.jobs.forecast.explain import explain_lines, forecast_explain
from ragassay.jobs.forecast.sample import read_sample
from ragassay.jobs.forecast.tokens import count_stretches
from ragassay.jobs.forecast.trial import Trial, try_engines
from ragassay.jobs.input import Logs, check_types
from ragassay.jobs.lines import print_lines
from ragassay.jobs.output.fingerprint import fingerprint
from ragassay.jobs.progress.bar import duration
from ragassay.jobs.progress.task import task
from ragassay.jobs.run import RunOptions, RunPlan, make_plan
from ragassay.jobs.score.frequencies import table_frequencies
from ragassay.jobs.score.register import check_input, check_models
from ragassay.jobs.score.stages import detect_stage, split_stage
from ragassay.jobs.storage import open_folder
from ragassay.jobs.traces.source import logs_to_look_at
from ragassay.jobs.verdict.languages import settle_languages
from ragassay.pipeline.engines.prepare import prepare_slm
from ragassay.pipeline.redact import redacted, redaction_of
from ragassay.pipeline.stages.stage import run_contained
from ragassay.schemas.columns import passthrough_name


@dataclass(frozen=True)
class Gpus:
    """GPUs to plan for.

    Attributes:
        count: How many.
        tokens_per_second: Prompt tokens that one of them computes a second, with this job's model.
        hourly_price: Price of one for an hour; None leaves costs out.
    """

    count: int
    tokens_per_second: float
    hourly_price: float | None = None


def plan(
    job: Job,
    input_uri: str,
    console: Console,
    progress: Console,
    *,
    sample: int,
    seconds: float,
    gpus: Gpus | None,
    began: float,
    output_uri: str | None = None,
) -> Forecast:
    """Tell what `ragassay run INPUT OUTPUT` will do, and what `ragassay score` will take; nothing is written.

    Args:
        job: The job.
        input_uri: Parquet file, folder, glob or URI.
        console: Where it is printed.
        progress: Where progress goes.
        sample: Rows to look at.
        seconds: How long to try the engines; 0 leaves times on this machine out.
        gpus: GPUs to plan for.
        began: `time.perf_counter()` when the command began: imports and checks take as long as they will in `score`.
        output_uri: Output folder or URI that the run is planned for; None plans for a new one.

    Returns:
        The forecast.

    Raises:
        RagassayError: The input or a model can't be used, or the output holds something else.
    """
    job = with_dtypes(job)
    with ExitStack() as staged:
        with task(progress, "checking", "logs"):
            logs = staged.enter_context(logs_to_look_at(job, input_uri))
            check_input(job, logs)
            check_types(logs, logs.files, logs.passthrough)
            new = staged.enter_context(TemporaryDirectory(prefix="ragassay-plan-"))
            planned = make_plan(job, logs, open_folder(output_uri or new), RunOptions())
        return _plan(planned, logs, console, progress, sample, seconds, gpus, began)


def _plan(
    planned: RunPlan,
    logs: Logs,
    console: Console,
    progress: Console,
    sample: int,
    seconds: float,
    gpus: Gpus | None,
    began: float,
) -> Forecast:
    job, checked_seconds = planned.job, time.perf_counter() - began
    if seconds:
        for member in (*(slm for slm in job.slms if not slm.engine.SERVED), *job.reading_models):
            prepare_slm(member)  # what is made only once takes no time of the run's
        started = time.perf_counter()
        check_models(job)
        checked_seconds += time.perf_counter() - started
    with task(progress, "reading", "sample"):
        language = [passthrough_name(job.splitter.column)] if job.splitter.column else []
        stretches = read_sample(logs, job.columns, sample, carried=language)
        started = time.process_time()
        redaction = redaction_of(job.redact)
        step = split_stage(settle_languages(job, fingerprint(job)))
        split = [run_contained(step, redacted(table, redaction)) for table in stretches]
        if job.detectors:
            _detect(job, split)
        other_seconds = time.process_time() - started
        told = forecast(job, logs, count_stretches(job, split), other_seconds)
    told = replace(told, explain=forecast_explain(job, told.sentences, split))
    with task(progress, "trying", "engines"):
        ray_seconds, trials = try_engines(job, split, seconds) if job.local_pools and seconds else (0.0, {})
        told = replace(told, escalate=forecast_escalate(job, told.rows, split, seconds))
    blocks = max(len(logs.files), round(told.chars / (job.block_mib * (1 << 20))))
    _print(planned, logs, told, checked_seconds + ray_seconds, trials, blocks, gpus, console)
    return told


def _detect(job: Job, tables: list[pa.Table]) -> None:
    counted = table_frequencies(tables, job.splitter)
    detect = detect_stage(job, lambda: counted)
    for table in tables:
        run_contained(detect, table)


def _print(
    planned: RunPlan,
    logs: Logs,
    told: Forecast,
    before: float,
    trials: dict[str, Trial],
    blocks: int,
    gpus: Gpus | None,
    console: Console,
) -> None:
    job = planned.job
    lines: list[tuple[str, str]] = []

    def line(name: str, text: str) -> None:
        lines.append((name, text))

    line("input", f"{told.rows:,} rows in {len(logs.files):,} files, {logs.size / (1 << 20):,.1f} MiB")
    line("looked at", f"{told.sampled:,} rows")
    line("sentences", f"{told.sentences:,.0f}")
    if told.reranked is not None:
        line("tokens rerank", f"{told.reranked:,.0f} to put passages in order; how long that takes is not told here")
    served = {slm.name for slm in job.slms if slm.engine.SERVED}
    for name, slm in told.slms.items():
        if name in served:
            line(f"requests {name}", f"{slm.prompts:,.0f} to its server, a sentence each; how long they take is not told here")
            continue
        spread = f" ({slm.tokens_low:,.0f} to {slm.tokens_high:,.0f})" if slm.tokens_low < slm.tokens_high else ""
        reused = 1 - slm.tokens_computed / slm.tokens if slm.tokens else 0.0
        line(
            f"tokens {name}",
            f"{slm.tokens_computed:,.0f}{spread} to compute, {slm.tokens:,.0f} with all that is shared ({reused:.0%} reused), "
            f"{slm.prompts:,.0f} prompts: {slm.tokens_computed / max(slm.prompts, 1):.0f} tokens each, "
            f"{slm.tokens_distinct / max(slm.prompts, 1):.0f} if all that is shared were computed once",
        )
    if trials or not (job.slms or job.uncertainty):
        here = seconds_here(job, told, before, trials, blocks, os.cpu_count() or 1)
        rates = ", ".join(f"{name} {trial.tokens_per_second:,.0f} tokens/s" for name, trial in trials.items())
        line(
            "time here",
            duration(here) + (f" (start-up {duration(start_up(before, trials))}; {rates})" if rates else ""),
        )
        if eager := worth_compiling(job, here):
            line("compile", f"a run this long may gain by it: plan again with enforce_eager: false for {', '.join(eager)}")
    if gpus is not None:
        seconds = seconds_on_gpus(told, gpus.count, gpus.tokens_per_second)
        cost = f", {seconds / 3600 * gpus.count * gpus.hourly_price:,.2f} in GPU hours" if gpus.hourly_price else ""
        line(
            f"time on {gpus.count} GPUs",
            f"{duration(seconds)} at {gpus.tokens_per_second:,.0f} tokens/s each, start-up not included{cost}",
        )
    if told.escalate is not None:
        took = told.escalate.seconds
        lines += escalate_lines(told.escalate, None if took is None else duration(took))
    lines += explain_lines(told.explain) if told.explain else []
    print_lines([*lines, *planned.describe(), *(("warning", warning) for warning in told.warnings)], console)
