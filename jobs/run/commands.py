"""The commands that make a run, on one output folder, under its lock: the order of the steps, and of what they write.

A run may be killed at any moment; the same command then resumes. For that, what is written comes in this order:

1. What a killed run had under way in `raw/` is deleted before anything reads `raw/`: a file of it may be cut off.
2. Files of which more rows are to be scored are committed again in the checkpoint before the manifest calls them pending.
3. The manifest holds every file as pending before a row of it is scored.
4. The manifest calls a file scored only when all of its rows are counted in `raw/`, and then none of its partition finalised.
5. The checkpoint of scored files is dropped after that: had it gone first, a crash between would score everything again. What
   it holds of files that are not whole is known to it alone, and stays.
6. Partitions are no longer called finalised before their verdicts are written anew, so that none is half old and half new.
7. The manifest names the judge before it is asked, so that nobody mixes its answers with those of another. Its checkpoint is
   dropped when the manifest knows what it decided.
8. Sealed files leave the manifest with the last write of a run.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from logging import getLogger

from rich.console import Console

from ragassay.jobs.config.job import Job, with_dtypes
from ragassay.jobs.input import Logs, refuse_overlap
from ragassay.jobs.integrations.lineage.events import run_events
from ragassay.jobs.integrations.traces.source import logs_of
from ragassay.jobs.output.commits import clear_pending
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import MANIFEST, existing_output, read_manifest, write_manifest
from ragassay.jobs.output.sealed import seal
from ragassay.jobs.output.sidecar import escalations
from ragassay.jobs.progress.show import finished
from ragassay.jobs.progress.task import task
from ragassay.jobs.run import errors
from ragassay.jobs.run.account import (
    Outcome,
    account,
    begin_run,
    end_run,
    fold_escalation,
    fold_fit,
    fold_judge,
    fold_score,
    fold_verdicts,
    open_files,
)
from ragassay.jobs.run.decide import decide
from ragassay.jobs.run.escalate import choose, escalate
from ragassay.jobs.run.fit import Fitted, fit
from ragassay.jobs.run.plan import Command, RunOptions, RunPlan, make_plan
from ragassay.jobs.run.score import Scored, score
from ragassay.jobs.runtime.ray_session import ray_session
from ragassay.jobs.runtime.resources import CHEAP
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, begun_files, drop_finished, reopen_files
from ragassay.jobs.scoring.register import check_input, check_selection, refuse_unfinished, waiting_partitions
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.jobs.verdicts.fit import fit_output, fits_of
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.manifest import DriftCheck, Manifest, Run

_LOG = getLogger(__name__)


def run_job(job: Job, input_uri: str, output_uri: str, console: Console, options: RunOptions | None = None) -> Run:
    """Score what is new, fit, finalise what has no verdicts yet, and escalate what was not yet, if the job says so.

    Args:
        job: The job.
        input_uri: Parquet file, folder, glob or URI.
        output_uri: Output folder or URI.
        console: Where progress goes.
        options: What of the input, and when to end.

    Returns:
        The run's record, as the manifest has it.

    Raises:
        RagassayError: See `pipeline.errors`; nothing is lost, the same command goes on where it stopped.
    """
    return _run(job, input_uri, open_folder(output_uri), console, replace(options or RunOptions(), command=Command.RUN))


def score_job(job: Job, input_uri: str, output_uri: str, console: Console, options: RunOptions | None = None) -> Run:
    """Score what is new, and no more. See `run_job`."""
    return _run(job, input_uri, open_folder(output_uri), console, replace(options or RunOptions(), command=Command.SCORE))


def finalize_job(job: Job, output_uri: str, console: Console) -> Run:
    """Give every row of an output folder a verdict under this job's settings; no model is needed. See `run_job`."""
    return _run(job, None, existing_output(output_uri), console, RunOptions(command=Command.FINALIZE))


def escalate_job(job: Job, output_uri: str, console: Console) -> Run:
    """Put the doubtful responses of an output folder to the judge of the job's cascade. See `run_job`.

    Raises:
        ConfigError: The job has none.
    """
    if job.escalation.judge is None:
        raise ConfigError(errors.NO_JUDGE)
    return _run(job, None, existing_output(output_uri), console, RunOptions(command=Command.ESCALATE))


def fit_job(job: Job, output_uri: str, console: Console) -> dict[str, Fit]:
    """Bring `stats/` up to date and give mu and sigma of every member. See `run_job`."""
    output = existing_output(output_uri)
    with locked(output, "fit", job.runtime.wait_seconds, console), _ray(job, CHEAP, console):
        manifest = read_manifest(output)
        refuse_unfinished(output, manifest, ())
        with task(console, "deciding", "moments", unit="partitions"):
            stats = fit_output(job.members.values, output, waiting_partitions(manifest, begun_files(output)))
        return fits_of(job.verdict.normalize, job.members.values, stats, list(stats), job.verdict.history.partitions)


def _run(job: Job, input_uri: str | None, output: Folder, console: Console, options: RunOptions) -> Run:
    """Plan under the lock, do the steps, and end the run."""
    job = with_dtypes(job)
    before = output.read(MANIFEST)
    logs: Logs | None = None
    traces: dict[str, int] = {}
    if input_uri is not None:
        logs, traces = _read_input(job, input_uri, output, console)
    run, command = _new_run(traces), options.command.value
    with (
        locked(output, command, job.runtime.wait_seconds, console) as note,
        run_events(job.integrations.openlineage, command, logs, output, run, console) as end_events,
    ):
        if note:
            console.print(note, markup=False)
        if input_uri is not None and output.read(MANIFEST) != before:  # another run has ended while this one waited
            logs, _ = _read_input(job, input_uri, output, console, staged=True)
        plan = _plan(job, logs, output, console, options)
        with ExitStack() as ray:
            if plan.needs_ray:
                ray.enter_context(_ray(job, (plan.cpus, plan.gpus), console))
            manifest, drift = _do_steps(plan, run, console)
        manifest = end_run(manifest, drift, datetime.now(UTC).isoformat(timespec="seconds"))
        run = _save(output, seal(output, manifest, run.run_id)).runs[-1]
        end_events(run)
        finished("run", run.sentences, "sentences")
        return run


def _read_input(job: Job, uri: str, output: Folder, console: Console, *, staged: bool = False) -> tuple[Logs, dict[str, int]]:
    """Find and check what is to be scored.

    Args:
        job: The job.
        uri: The input.
        output: The output folder.
        console: Where progress goes.
        staged: Whether traces have been staged.

    Returns:
        The logs, and what was counted of traces that were staged.
    """
    with task(console, "checking", "logs", unit="files"):
        logs, traces = logs_of(job.input, uri, output, wait=job.runtime.wait_seconds, console=console, staged=staged)
        check_input(job, logs)
        if job.input.preset is None:  # else they are below OUTPUT, and what they were made of is apart
            refuse_overlap(logs, output)
    return logs, traces


def _new_run(traces: dict[str, int]) -> Run:
    now = datetime.now(UTC)
    run_id = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    return Run(run_id=run_id, started=now.isoformat(timespec="seconds"), traces=traces)


def _plan(job: Job, logs: Logs | None, output: Folder, console: Console, options: RunOptions) -> RunPlan:
    """Make the plan, and check what takes longer than that."""
    if logs is None:
        return make_plan(job, None, output, options)
    clear_pending(output, CHECKPOINT, "raw")
    with task(console, "checking", "output"):
        plan = make_plan(job, logs, output, options)
        assert plan.selection is not None
        check_selection(job, plan.selection)
    for name, text in plan.describe():
        _LOG.info("plan: %s: %s", name, text)
    return plan


@contextmanager
def _ray(job: Job, needed: tuple[float, float], console: Console) -> Iterator[None]:
    """Ray with so many logical CPUs and GPUs; its start is shown."""
    with ExitStack() as stack:
        with task(console, "loading", "Ray"):
            stack.enter_context(ray_session(job.runtime, *needed))
        yield


def _do_steps(plan: RunPlan, run: Run, console: Console) -> tuple[Manifest, DriftCheck | None]:
    """Do the steps of a plan, and write the manifest at the end of each."""
    output, manifest = plan.output, begin_run(plan, run)
    scored = fitted = escalated = None
    if plan.registration is not None:
        reopen_files(output, plan.registration.reopened)
        _save(output, manifest)
        scored = score(plan, console)
        manifest = _save(output, fold_score(manifest, plan, scored))
        drop_finished(output, open_files(manifest.files))
    if plan.finalize.runs:
        manifest, fitted = _give_verdicts(plan, manifest, scored, console)
    if plan.escalate.runs:
        chosen = choose(plan, manifest)
        if chosen.wanted:
            manifest = _save(output, fold_judge(manifest, chosen))
        escalated = escalate(plan, manifest, chosen, console)
        manifest = _save(output, fold_escalation(manifest, scored, escalated))
        escalations(output).drop_checkpoint()
    return manifest, account(plan, manifest, Outcome(scored, fitted, escalated))


def _give_verdicts(
    plan: RunPlan, manifest: Manifest, scored: Scored | None, console: Console
) -> tuple[Manifest, Fitted | None]:
    fitted = fit(plan, manifest, scored, console)
    if fitted is None:
        return manifest, None
    manifest = _save(plan.output, fold_fit(manifest, fitted))
    manifest = fold_verdicts(manifest, scored, fitted, decide(plan, manifest, fitted, console))
    if plan.escalate.runs:  # else the run ends at once, and writes it with the comparison that belongs to it
        _save(plan.output, manifest)
    return manifest, fitted


def _save(output: Folder, manifest: Manifest) -> Manifest:
    write_manifest(output, manifest)
    return manifest
