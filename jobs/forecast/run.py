"""`ragassay plan`: look at an input, try the engines, and print what the job will take."""

import time
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import pyarrow as pa
from rich.console import Console

from ragassay.jobs.config.job import Job, with_dtypes
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.forecast.count import count_stretches
from ragassay.jobs.forecast.estimate import Forecast, forecast_lines, forecast_run
from ragassay.jobs.forecast.sample import read_sample
from ragassay.jobs.forecast.trial import try_engines, try_judge
from ragassay.jobs.input import Logs, check_types
from ragassay.jobs.integrations.traces.source import preview_job_logs
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.progress.bar import format_duration
from ragassay.jobs.progress.task import task
from ragassay.jobs.run import RunOptions, make_plan
from ragassay.jobs.scoring.frequencies import count_table_frequencies
from ragassay.jobs.scoring.register import check_input, check_models
from ragassay.jobs.scoring.stages import make_detect_stage, make_split_stage
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.verdicts.languages import resolve_languages
from ragassay.pipeline.engines.prepare import prepare_model
from ragassay.pipeline.stages.stage import run_contained
from ragassay.pipeline.text.redact import make_redaction, redact_rows
from ragassay.schemas.columns import passthrough_name


def plan(
    job: Job,
    input_uri: str,
    console: Console,
    progress: Console,
    *,
    sample: int,
    seconds: float,
    gpus: int | None,
    gpu_tokens_per_second: float | None,
    gpu_price: float | None,
    began: float,
    output_uri: str | None = None,
) -> list[Forecast]:
    """Tell what `ragassay run INPUT OUTPUT` will do, and what `ragassay score` will take; nothing is written.

    Args:
        job: The job.
        input_uri: Parquet file, folder, glob or URI.
        console: Where it is printed.
        progress: Where progress goes.
        sample: Rows to look at.
        seconds: How long to try the engines; 0 leaves times on this machine out.
        gpus: GPUs to plan for as well, if any.
        gpu_tokens_per_second: Prompt tokens that one of them computes a second, with this job's model.
        gpu_price: Price of one for an hour; None leaves costs out.
        began: `time.perf_counter()` when the command began: imports and checks take as long as they will in `score`.
        output_uri: Output folder or URI that the run is planned for; None plans for a new one.

    Returns:
        The forecasts; the first is of scoring as a whole.

    Raises:
        RagassayError: The input or a model can't be used, or the output holds something else.
    """
    job = with_dtypes(job)
    with ExitStack() as staged:
        with task(progress, "checking", "logs"):
            logs = staged.enter_context(preview_job_logs(job.input, input_uri))
            check_input(job, logs)
            check_types(logs, logs.files, logs.passthrough)
            new = staged.enter_context(TemporaryDirectory(prefix="ragassay-plan-"))
            planned = make_plan(job, logs, open_folder(output_uri or new), RunOptions())
        job, before = planned.job, time.perf_counter() - began
        if seconds:
            for member in (*(slm for slm in job.members.slms if not slm.engine.IS_SERVED), *job.members.reading_models):
                prepare_model(member)  # what is made only once takes no time of the run's
            started = time.perf_counter()
            check_models(job)
            before += time.perf_counter() - started
        with task(progress, "reading", "sample"):
            stretches, other_seconds = _split_sample(job, logs, sample)
            counted = count_stretches(job, stretches)
        with task(progress, "trying", "engines"):
            ray_seconds, trials = try_engines(job, stretches, seconds)
            trials |= try_judge(job, stretches, seconds)
        forecasts = forecast_run(job, logs, counted, trials, before + ray_seconds, other_seconds)
    size = f"{forecasts[0].rows:,} rows in {len(logs.files):,} files, {logs.size / (1 << 20):,.1f} MiB"
    lines = [("input", size), *forecast_lines(job, forecasts)]
    if gpus and gpu_tokens_per_second:
        there = forecasts[0].asked.computed / (gpus * gpu_tokens_per_second)
        cost = f", {there / 3600 * gpus * gpu_price:,.2f} in GPU hours" if gpu_price else ""
        text = f"{format_duration(there)} at {gpu_tokens_per_second:,.0f} tokens/s each, start-up not included{cost}"
        lines.append((f"time on {gpus} GPUs", text))
    print_lines([*lines, *planned.describe(), *(("warning", note) for note in forecasts[0].notes)], console)
    return forecasts


def _split_sample(job: Job, logs: Logs, rows: int) -> tuple[list[pa.Table], float]:
    """Rows to look at as the stage `split` leaves them, and CPU seconds that split and detectors took for them."""
    language = [passthrough_name(job.splitting.language_column)] if job.splitting.language_column else []
    stretches = read_sample(logs, job.input.columns, rows, carried=language)
    started = time.process_time()
    redaction = make_redaction(job.input.redact)
    step = make_split_stage(resolve_languages(job, make_fingerprint(job)))
    split = [run_contained(step, redact_rows(table, redaction)) for table in stretches]
    if job.members.detectors:
        frequencies = count_table_frequencies(split, job.splitting)
        detect = make_detect_stage(job, lambda: frequencies)
        for table in split:
            run_contained(detect, table)
    return split, time.process_time() - started
