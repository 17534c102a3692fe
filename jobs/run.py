"""The job: `score`, `fit`, `finalize` and `escalate` on one output folder, under its lock, with a manifest that balances."""

import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from rich.console import Console

from ragassay.jobs.config import Job, with_dtypes
from ragassay.jobs.escalate.run import escalate_output, judge_stages, not_escalated
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.lineage.events import told
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output, read_manifest, write_manifest
from ragassay.jobs.output.partitions import hive_path, partitions
from ragassay.jobs.output.sealed import seal
from ragassay.jobs.plan import Stage, needed_resources
from ragassay.jobs.progress.show import finished
from ragassay.jobs.progress.task import task
from ragassay.jobs.ray_session import ray_session
from ragassay.jobs.resources import CHEAP
from ragassay.jobs.score.balance import count_scored
from ragassay.jobs.score.checkpoint import CHECKPOINT, CommittedRows, clear_pending, forget_pending
from ragassay.jobs.score.frequencies import ensure_frequencies
from ragassay.jobs.score.plan import score_files
from ragassay.jobs.score.register import check_input, refuse_unfinished, register
from ragassay.jobs.score.stages import stages
from ragassay.jobs.storage import Folder, open_folder
from ragassay.jobs.traces.source import logs_of
from ragassay.jobs.verdict.drift import check_drift
from ragassay.jobs.verdict.error_share import worst_share
from ragassay.jobs.verdict.fit import fit_output, fits_of
from ragassay.jobs.verdict.verdicts import count_rows, decide, quantile, without_verdict, write_verdicts
from ragassay.pipeline.errors import BalanceError, ConfigError, OutputError
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import PENDING, SCORED, Manifest, Run, Verdicts
from ragassay.schemas.stats import PartitionStats


def run_job(job: Job, input_uri: str, output_uri: str, console: Console) -> Run:
    """Score what is new, fit, finalise what has no verdicts yet, and escalate what was not yet, if the job says so.

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
    return _job(job, output_uri, console, input_uri=input_uri, finalize=True, escalate=True)


def score_job(job: Job, input_uri: str, output_uri: str, console: Console) -> Run:
    """Score what is new, and no more. See `run_job`."""
    return _job(job, output_uri, console, input_uri=input_uri)


def finalize_job(job: Job, output_uri: str, console: Console) -> Run:
    """Give every row of an output folder a verdict under this job's settings; no model is needed. See `run_job`."""
    return _job(job, output_uri, console, input_uri=None, finalize=True)


def escalate_job(job: Job, output_uri: str, console: Console) -> Run:
    """Put the doubtful responses of an output folder to the judge of the job's cascade. See `run_job`.

    Raises:
        ConfigError: The job has none.
    """
    if job.escalate is None:
        raise ConfigError(
            "the job file names no judge: add to it, for example,\n"
            "escalate:\n  to: {name: judge, model: Qwen/Qwen2.5-7B-Instruct, replicas: {num_gpus: 1}}\n  share: 0.2\n"
            "and name it with --config; `to` is an SLM as those of `slms`, a served one too"
        )
    return _job(job, output_uri, console, input_uri=None, escalate=True)


def fit_job(job: Job, output_uri: str, console: Console) -> dict[str, Fit]:
    """Bring `stats/` up to date and give mu and sigma of every member. See `run_job`."""
    output = existing_output(output_uri)
    with locked(output), _ray(job, CHEAP, console, wanted=True):
        refuse_unfinished(output, read_manifest(output), ())
        with task(console, "deciding", "moments", unit="partitions"):
            stats = fit_output(job, output)
        return fits_of(job.normalize, job.values, stats, list(stats), job.history.partitions)


def _job(
    job: Job, output_uri: str, console: Console, *, input_uri: str | None, finalize: bool = False, escalate: bool = False
) -> Run:
    job = with_dtypes(job)
    output = open_folder(output_uri) if input_uri is not None else existing_output(output_uri)
    logs, traces = _logs(job, input_uri, output, console)
    now = datetime.now(UTC)
    run = Run(run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}", started=now.isoformat(timespec="seconds"))
    step = "score" if not (finalize or escalate) else "run" if logs is not None else "finalize" if finalize else "escalate"
    with locked(output) as note, told(job.openlineage, step, logs, output, run, console):
        if note:
            console.print(note, markup=False)
        manifest = read_manifest(output)
        run.traces = traces
        manifest.runs.append(run)
        pending: dict[int, LogFile] = {}
        if logs is not None:
            run.source = logs.source
            clear_pending(output)  # before anything reads raw/: a file of it may be cut off
            with task(console, "checking", "output"):
                pending = _register(job, logs, output, manifest, run)
        to_finalize = finalize and (logs is None or bool(pending) or bool(without_verdict(partitions(output, "raw"), manifest)))
        to_escalate = escalate and _escalates(job, output, manifest, logs, coming=bool(pending) or to_finalize)
        needed = _needed(job, to_score=bool(pending), to_escalate=to_escalate)
        with _ray(job, needed, console, wanted=bool(pending) or to_finalize or to_escalate):
            scored = pending if logs is not None else None
            if logs is not None:
                _score(job, logs, pending, output, manifest, run, console)
            stats, tonight = _finalize(job, output, manifest, run, scored, console) if to_finalize else ({}, [])
            escalated = _escalate(job, output, manifest, run, scored, console) if to_escalate else []
            if logs is not None and (tonight or escalated):  # a night that broke off behind its verdicts is compared now
                run.drift = check_drift(job, manifest, stats or fit_output(job, output), tonight or escalated)
        if not run.errors:  # it wrote no row: what was wrong with those before is wrong still
            run.errors = next((before.errors for before in reversed(manifest.runs) if before.errors), {})
        run.finished = datetime.now(UTC).isoformat(timespec="seconds")
        seal(output, manifest, run.run_id)
        write_manifest(output, manifest)
        finished("run", run.sentences, "sentences")
        return run


def _logs(job: Job, uri: str | None, output: Folder, console: Console) -> tuple[Logs | None, dict[str, int]]:
    """What is to be scored, checked; and what was counted of traces that were staged for it."""
    if uri is None:
        return None, {}
    with task(console, "checking", "logs", unit="files"):
        logs, traces = logs_of(job, uri, output)
        check_input(job, logs)
    return logs, traces


@contextmanager
def _ray(job: Job, needed: tuple[float, float], console: Console, *, wanted: bool) -> Iterator[None]:
    """Ray, if it is wanted; its start is shown."""
    with ExitStack() as stack:
        if wanted:
            with task(console, "loading", "Ray"):
                stack.enter_context(ray_session(job, *needed))
        yield


def _register(job: Job, logs: Logs, output: Folder, manifest: Manifest, run: Run) -> dict[int, LogFile]:
    """Enter the input's files in the manifest; those to score, by number."""
    found = register(job, logs, output, manifest)
    manifest.fingerprint, manifest.files = found.fingerprint, found.files
    for number, file in found.unsealed.items():
        manifest.unseal(number, file)
    run.files_touched, run.files_skipped = found.touched, found.skipped
    write_manifest(output, manifest)
    return found.to_score


def _score(
    job: Job, logs: Logs, pending: Mapping[int, LogFile], output: Folder, manifest: Manifest, run: Run, console: Console
) -> None:
    started = time.perf_counter()
    files = {number: file for number, file in pending.items() if file.rows}
    total = sum(file.rows or 0 for file in files.values())
    if files:
        committed = CommittedRows(output, files)
        run.resumed = committed()
        console.print(f"{total} rows to score" + (f", {run.resumed} of them already committed" if run.resumed else ""))
        with task(console, "reading", "contexts"):
            frequencies = ensure_frequencies(job, logs, files, output) if job.detectors else None
        score_files(job, logs, files, output, frequencies, run.resumed, console)
    all_rows = sum(file.rows or 0 for file in logs.files)
    with task(console, "counting", "rows", total, "rows"):
        statuses, usage, sentences = count_scored(output, files)
    run.statuses, run.usage, run.sentences = dict(statuses), usage, sentences
    run.errors = worst_share(statuses)
    engines = {slm.name: slm.engine for slm in job.slms} | {model.name: model.engine for model in job.reading_models}
    run.dtypes = {name: engine.computes_in for name, engine in engines.items()}
    scored = statuses.pop(Status.OK.value, 0)
    run.rows = {"in": all_rows, "scored": scored, "failed": sum(statuses.values()), "skipped": all_rows - total}
    if run.rows["in"] != run.rows["scored"] + run.rows["failed"] + run.rows["skipped"]:
        raise BalanceError(f"the rows of this run do not add up: {run.rows}")
    forget_pending(output)
    for number in pending:
        manifest.files[number].state = SCORED
        for known in (manifest.finalized, manifest.escalated):
            known.pop(manifest.files[number].partition, None)
    run.seconds["score"] = round(time.perf_counter() - started, 3)
    write_manifest(output, manifest)
    # Only now: had the checkpoint gone first, a crash between would have scored everything again. And only where no other
    # file is pending: its uncommitted rows, if there are any, are known to the checkpoint alone.
    if all(f.state != PENDING for f in manifest.files.values()):
        output.delete(CHECKPOINT)


def _finalize(
    job: Job, output: Folder, manifest: Manifest, run: Run, scored: Collection[int] | None, console: Console
) -> tuple[dict[str, PartitionStats], list[str]]:
    """Finalise the partitions without verdicts, which are then compared with the history before them; or all.

    Args:
        job: Says how.
        output: The output folder.
        manifest: Its manifest.
        run: This run's record.
        scored: Numbers of the input files that this run has scored, whose rows it reports; None finalises everything, and
            reports the rows of the whole folder.
        console: Where progress goes.

    Returns:
        Statistics of every partition, and those that it wrote.
    """
    started = time.perf_counter()
    refuse_unfinished(output, manifest, ())
    raw = partitions(output, "raw")
    chosen = list(raw) if scored is None else without_verdict(raw, manifest)
    with task(console, "deciding", "moments", unit="partitions"):
        stats = fit_output(job, output)
    decided = decide(job, manifest, run.run_id, stats, chosen)
    run.fit = decided.fit
    run.seconds["fit"] = round(time.perf_counter() - started, 3)
    started = time.perf_counter()
    with task(console, "deciding", "threshold"):
        run.threshold = decided.threshold or quantile(job, output, raw, decided.settings, chosen)
    settings = replace(decided.settings, threshold=run.threshold.value)
    for partition in chosen:  # a crash from here on leaves them to be finalised anew, not half old and half new
        manifest.finalized.pop(hive_path(partition), None)
    write_manifest(output, manifest)
    with task(console, "deciding", "verdicts", unit="partitions"):
        done = write_verdicts(output, manifest, raw, settings, stats, chosen)
    run.partitions = sorted(map(hive_path, chosen))
    written = count_rows(manifest.files, done.values(), scored)
    ok, total = written.statuses[Status.OK.value], written.statuses.total()
    skipped = 0 if scored is None else run.rows["skipped"]
    run.statuses, run.sentences, run.flagged = dict(written.statuses), written.sentences, written.flagged
    run.rows = {"in": total + skipped, "scored": ok, "failed": total - ok, "skipped": skipped}
    run.errors = written.errors or run.errors
    for number in written.files & manifest.files.keys():
        manifest.files[number].judged = True
    for partition, part in done.items():
        ok = sum(statuses[Status.OK.value] for statuses in part.statuses.values())
        manifest.finalized[hive_path(partition)] = Verdicts(run.run_id, ok, part.flagged.total())
    run.seconds["finalize"] = round(time.perf_counter() - started, 3)
    return stats, list(chosen)


def _escalates(job: Job, output: Folder, manifest: Manifest, logs: Logs | None, *, coming: bool) -> bool:
    """Whether there is anything to escalate: verdicts that are coming, or that no judge was asked about. The command of that
    name looks in any case, since errors of the judge may have passed."""
    if job.escalate is None:
        return False
    if logs is None and not manifest.finalized:
        raise OutputError(f"output {output.uri} has no verdicts yet: run `ragassay finalize {output.uri}` first")
    return logs is None or coming or bool(not_escalated(output, manifest))


def _needed(job: Job, *, to_score: bool, to_escalate: bool) -> tuple[float, float]:
    """Logical CPUs and GPUs that the steps need, which run one after the other."""
    plans: list[Sequence[Stage]] = [stages(job)] if to_score else []
    if to_escalate and job.escalate:
        plans.append(judge_stages(job, job.escalate))
    cpus, gpus = zip(CHEAP, *map(needed_resources, plans), strict=True)
    return max(cpus), max(gpus)


def _escalate(
    job: Job, output: Folder, manifest: Manifest, run: Run, scored: Collection[int] | None, console: Console
) -> list[str]:
    """Escalate; the run's own count of flagged responses, where it has one, is that of the verdicts in force."""
    if scored is None:
        rows = manifest.scored_rows().total()
        run.rows = {"in": rows, "scored": 0, "failed": 0, "skipped": rows}
    done = escalate_output(job, output, manifest, run, console, anew=scored is None)
    if run.flagged is not None:
        run.flagged += sum(rise for number, rise in done.rise.items() if scored is None or number in scored)
    return done.partitions
