"""The job: `score`, `fit` and `finalize` on one output folder, under its lock, with a manifest that balances."""

import secrets
import time
from contextlib import nullcontext
from datetime import UTC, datetime

from rich.console import Console

from ragassay.jobs.config import Job, with_dtypes
from ragassay.jobs.input import LogFile, Logs, find_logs, refuse_overlap
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.state import State, existing_output, read_manifest
from ragassay.jobs.ray_session import ray_session
from ragassay.jobs.resources import CHEAP
from ragassay.jobs.score.balance import count_rows
from ragassay.jobs.score.checkpoint import CHECKPOINT, CommittedRows, clear_pending, forget_pending
from ragassay.jobs.score.frequencies import ensure_frequencies
from ragassay.jobs.score.plan import score_files
from ragassay.jobs.score.progress import progress
from ragassay.jobs.score.register import check_input, refuse_unfinished, register
from ragassay.jobs.stages import needed_resources, stages
from ragassay.jobs.storage import open_folder
from ragassay.jobs.verdict.error_share import worst_share
from ragassay.jobs.verdict.fit import fit_output, fits_of
from ragassay.jobs.verdict.verdicts import without_verdict, write_verdicts
from ragassay.pipeline.errors import BalanceError
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import PENDING, SCORED, Run


def run_job(job: Job, input_uri: str, output_uri: str, console: Console) -> Run:
    """Score what is new, fit, and finalise what has no verdicts yet.

    Args:
        job: The job.
        input_uri: Parquet file, folder, glob or URI.
        output_uri: Output folder or URI.
        console: Where progress goes.

    Returns:
        The run's record, as the manifest has it.

    Raises:
        RagassayError: See `pipeline.errors`; nothing is lost, the same command goes on where it stopped.
    """
    return _job(job, output_uri, console, input_uri=input_uri, finalize=True)


def score_job(job: Job, input_uri: str, output_uri: str, console: Console) -> Run:
    """Score what is new, and no more. See `run_job`."""
    return _job(job, output_uri, console, input_uri=input_uri, finalize=False)


def finalize_job(job: Job, output_uri: str, console: Console) -> Run:
    """Give every row of an output folder a verdict under this job's settings; no model is needed. See `run_job`."""
    return _job(job, output_uri, console, input_uri=None, finalize=True)


def fit_job(job: Job, output_uri: str) -> dict[str, Fit]:
    """Bring `stats/` up to date and give mu and sigma of every member. See `run_job`."""
    output = existing_output(output_uri)
    with locked(output), ray_session(job, *CHEAP):
        refuse_unfinished(output, read_manifest(output), ())
        stats = fit_output(job, output)
        return fits_of(job.normalize, job.values, stats, list(stats), job.history.partitions)


def _job(job: Job, output_uri: str, console: Console, *, input_uri: str | None, finalize: bool) -> Run:
    job = with_dtypes(job)
    logs = find_logs(input_uri) if input_uri is not None else None
    if logs is not None:
        check_input(job, logs)
    output = open_folder(output_uri) if logs is not None else existing_output(output_uri)
    if logs is not None:
        refuse_overlap(logs, output)
    with locked(output):
        now = datetime.now(UTC)
        run = Run(run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}", started=now.isoformat(timespec="seconds"))
        state = State(output, read_manifest(output), run, console)
        state.manifest.runs.append(run)
        pending: dict[int, LogFile] = {}
        if logs is not None:
            clear_pending(output)  # before anything reads raw/: a file of it may be cut off
            pending = register(job, logs, state)
        to_finalize = finalize and (logs is None or bool(pending) or bool(without_verdict(state)))
        needed = needed_resources(stages(job)) if pending else CHEAP
        session = ray_session(job, *needed) if pending or to_finalize else nullcontext()
        with session:
            if logs is not None:
                _score(job, logs, pending, state)
            if to_finalize:
                write_verdicts(job, state, pending if logs is not None else None)
        if not run.errors:  # it wrote no row: what was wrong with those before is wrong still
            run.errors = next((before.errors for before in reversed(state.manifest.runs) if before.errors), {})
        run.finished = datetime.now(UTC).isoformat(timespec="seconds")
        state.save()
        return run


def _score(job: Job, logs: Logs, pending: dict[int, LogFile], state: State) -> None:
    run, started = state.run, time.perf_counter()
    files = {number: file for number, file in pending.items() if file.rows}
    total = sum(file.rows or 0 for file in files.values())
    if files:
        committed = CommittedRows(state.output, files)
        run.resumed = committed()
        state.console.print(f"{total} rows to score" + (f", {run.resumed} of them already committed" if run.resumed else ""))
        with progress(committed, total, state.console):
            frequencies = ensure_frequencies(job, logs, files, state.output) if job.detectors else None
            score_files(job, logs, files, state.output, frequencies)
    all_rows = sum(file.rows or 0 for file in logs.files)
    statuses, usage, sentences = count_rows(state.output, files)
    run.statuses, run.usage, run.sentences = dict(statuses), usage, sentences
    run.errors = worst_share(statuses)
    run.dtypes = {slm.name: slm.engine.dtype for slm in job.slms}
    scored = statuses.pop(Status.OK.value, 0)
    run.rows = {"in": all_rows, "scored": scored, "failed": sum(statuses.values()), "skipped": all_rows - total}
    if run.rows["in"] != run.rows["scored"] + run.rows["failed"] + run.rows["skipped"]:
        raise BalanceError(f"the rows of this run do not add up: {run.rows}")
    forget_pending(state.output)
    for number in pending:
        state.manifest.files[number].state = SCORED
        state.manifest.finalized.pop(state.manifest.files[number].partition, None)
    run.seconds["score"] = round(time.perf_counter() - started, 3)
    state.save()
    # Only now: had the checkpoint gone first, a crash between would have scored everything again. And only where no other
    # file is pending: its uncommitted rows, if there are any, are known to the checkpoint alone.
    if all(f.state != PENDING for f in state.manifest.files):
        state.output.delete(CHECKPOINT)
