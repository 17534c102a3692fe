"""The job: `score`, `fit`, `finalize` and `escalate` on one output folder, under its lock, with a manifest that balances."""

import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rich.console import Console

from ragassay.jobs.config import Job, with_dtypes
from ragassay.jobs.escalate.run import escalate_output, judge_stages, not_escalated
from ragassay.jobs.input import LogFile, Logs, refuse_overlap
from ragassay.jobs.lineage.events import told
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import MANIFEST, existing_output, needs_text, read_manifest, write_manifest
from ragassay.jobs.output.partitions import hive_path, partitions
from ragassay.jobs.output.sealed import seal
from ragassay.jobs.plan import needed_resources
from ragassay.jobs.progress.show import finished
from ragassay.jobs.progress.task import task
from ragassay.jobs.ray_session import ray_session
from ragassay.jobs.resources import CHEAP
from ragassay.jobs.score.backfill import WHOLE_INPUT, Backfill, left_of
from ragassay.jobs.score.balance import Counted, count_scored
from ragassay.jobs.score.checkpoint import (
    CommittedRows,
    clear_pending,
    committed_rows,
    drop_finished,
    forget_pending,
    unfinished_files,
)
from ragassay.jobs.score.datasource import Limits
from ragassay.jobs.score.frequencies import ensure_frequencies
from ragassay.jobs.score.plan import score_files
from ragassay.jobs.score.register import Registered, check_input, refuse_unfinished, register, unfinished
from ragassay.jobs.score.row_set import RowSet
from ragassay.jobs.score.stages import stages
from ragassay.jobs.storage import Folder, open_folder
from ragassay.jobs.traces.source import logs_of
from ragassay.jobs.verdict.drift import check_drift
from ragassay.jobs.verdict.error_share import worst_share
from ragassay.jobs.verdict.fit import fit_output, fits_of
from ragassay.jobs.verdict.verdicts import check_parts, count_rows, decide, quantile, without_verdict, write_verdicts
from ragassay.pipeline.errors import BalanceError, ConfigError, OutputError
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import LEFT, PENDING, SCORED, Manifest, Run, Verdicts
from ragassay.schemas.stats import PartitionStats


def run_job(
    job: Job, input_uri: str, output_uri: str, console: Console, backfill: Backfill = WHOLE_INPUT, wait: float = 0.0
) -> Run:
    """Score what is new, fit, finalise what has no verdicts yet, and escalate what was not yet, if the job says so.

    Args:
        job: The job.
        input_uri: Parquet file, folder, glob or URI.
        output_uri: Output folder or URI.
        console: Where progress goes.
        backfill: What of the input, in which order, and when to end.
        wait: Seconds to wait for another command that writes into the output folder.

    Returns:
        The run's record, as the manifest has it.

    Raises:
        RagassayError: See `pipeline.errors`; nothing is lost, the same command goes on where it stopped.
    """
    return _job(job, output_uri, console, wait, input_uri=input_uri, finalize=True, escalate=True, backfill=backfill)


def score_job(
    job: Job, input_uri: str, output_uri: str, console: Console, backfill: Backfill = WHOLE_INPUT, wait: float = 0.0
) -> Run:
    """Score what is new, and no more. See `run_job`."""
    return _job(job, output_uri, console, wait, input_uri=input_uri, backfill=backfill)


def finalize_job(job: Job, output_uri: str, console: Console, wait: float = 0.0) -> Run:
    """Give every row of an output folder a verdict under this job's settings; no model is needed. See `run_job`."""
    return _job(job, output_uri, console, wait, input_uri=None, finalize=True)


def escalate_job(job: Job, output_uri: str, console: Console, wait: float = 0.0) -> Run:
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
    return _job(job, output_uri, console, wait, input_uri=None, escalate=True)


def fit_job(job: Job, output_uri: str, console: Console, wait: float = 0.0) -> dict[str, Fit]:
    """Bring `stats/` up to date and give mu and sigma of every member. See `run_job`."""
    output = existing_output(output_uri)
    with locked(output, "fit", wait, console), _ray(job, CHEAP, console, wanted=True):
        manifest = read_manifest(output)
        refuse_unfinished(output, manifest, ())
        with task(console, "deciding", "moments", unit="partitions"):
            stats = fit_output(job, output, unfinished(output, manifest))
        return fits_of(job.normalize, job.values, stats, list(stats), job.history.partitions)


def _job(
    job: Job,
    output_uri: str,
    console: Console,
    wait: float,
    *,
    input_uri: str | None,
    finalize: bool = False,
    escalate: bool = False,
    backfill: Backfill = WHOLE_INPUT,
) -> Run:
    began = time.time()
    job = with_dtypes(job)
    output = open_folder(output_uri) if input_uri is not None else existing_output(output_uri)
    before = output.read(MANIFEST)
    logs: Logs | None = None
    traces: dict[str, int] = {}
    if input_uri is not None:
        logs, traces = _looked_at(job, input_uri, output, console, wait)
    now = datetime.now(UTC)
    run = Run(run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}", started=now.isoformat(timespec="seconds"))
    run.share, run.traces = backfill.share, traces
    step = "score" if not (finalize or escalate) else "run" if logs is not None else "finalize" if finalize else "escalate"
    with locked(output, step, wait, console) as note, told(job.openlineage, step, logs, output, run, console):
        if note:
            console.print(note, markup=False)
        manifest = read_manifest(output)
        manifest.runs.append(run)
        found = None
        if logs is not None and input_uri is not None:
            if output.read(MANIFEST) != before:  # another run has ended while this one waited
                logs, _ = _looked_at(job, input_uri, output, console, staged=True)
            run.source = logs.source
            clear_pending(output)  # before anything reads raw/: a file of it may be cut off
            with task(console, "checking", "output"):
                found = _register(job, logs, output, manifest, run, backfill)
                if finalize:
                    check_parts(job, manifest)
        pending = bool(found and found.to_score)
        to_finalize = finalize and (logs is None or pending or bool(without_verdict(partitions(output, "raw"), manifest)))
        to_escalate = escalate and _escalates(job, output, manifest, logs, coming=pending or to_finalize)
        needed = _needed(job, to_score=pending, to_escalate=to_escalate)
        with _ray(job, needed, console, wanted=pending or to_finalize or to_escalate):
            deadline = None if backfill.hours is None else began + 3600 * backfill.hours
            scored = _score(job, logs, found, output, manifest, run, console, deadline) if logs and found else None
            stats, tonight = _finalize(job, output, manifest, run, scored, console) if to_finalize else ({}, [])
            numbers = None if scored is None else scored.files
            escalated = _escalate(job, output, manifest, run, numbers, console) if to_escalate else []
            if scored is not None:  # a partition that waits has no statistics to compare
                escalated = [place for place in escalated if hive_path(place) not in scored.unfinished]
            if scored is not None and (tonight or escalated):  # a night that broke off behind its verdicts is compared now
                stats = stats or fit_output(job, output, scored.unfinished)
                run.drift = check_drift(job, manifest, stats, tonight or escalated)
        if not run.errors:  # it wrote no row: what was wrong with those before is wrong still
            run.errors = next((before.errors for before in reversed(manifest.runs) if before.errors), {})
        run.finished = datetime.now(UTC).isoformat(timespec="seconds")
        seal(output, manifest, run.run_id)
        write_manifest(output, manifest)
        finished("run", run.sentences, "sentences")
        return run


def _looked_at(
    job: Job, uri: str, output: Folder, console: Console, wait: float = 0.0, *, staged: bool = False
) -> tuple[Logs, dict[str, int]]:
    """What is to be scored, checked; and what was counted of traces that were staged for it, unless they are staged."""
    with task(console, "checking", "logs", unit="files"):
        logs, traces = logs_of(job, uri, output, wait=wait, console=console, staged=staged)
        check_input(job, logs)
        if job.input.preset is None:  # else they are below OUTPUT, and what they were made of is apart
            refuse_overlap(logs, output)
    return logs, traces


@contextmanager
def _ray(job: Job, needed: tuple[float, float], console: Console, *, wanted: bool) -> Iterator[None]:
    """Ray, if it is wanted; its start is shown."""
    with ExitStack() as stack:
        if wanted:
            with task(console, "loading", "Ray"):
                stack.enter_context(ray_session(job, *needed))
        yield


def _register(job: Job, logs: Logs, output: Folder, manifest: Manifest, run: Run, backfill: Backfill) -> Registered:
    """Enter the input's files in the manifest, and tell which of them to score."""
    found = register(job, logs, output, manifest, backfill)
    manifest.fingerprint, manifest.files = found.fingerprint, found.files
    for number, file in found.unsealed.items():
        manifest.unseal(number, file)
    run.files_touched, run.files_skipped = found.touched, found.skipped
    write_manifest(output, manifest)
    return found


@dataclass(frozen=True)
class _Scored:
    """What a run has scored.

    Attributes:
        files: Numbers of the files of which all is scored now.
        counted: Their rows.
        unfinished: Hive paths of the partitions that wait for later runs.
    """

    files: set[int]
    counted: Counted
    unfinished: set[str]


def _score(
    job: Job,
    logs: Logs,
    found: Registered,
    output: Folder,
    manifest: Manifest,
    run: Run,
    console: Console,
    deadline: float | None,
) -> _Scored:
    started = time.perf_counter()
    pending = found.to_score
    files = {number: file for number, file in pending.items() if file.rows}
    total = sum(len(found.chosen[n]) if n in found.chosen else file.rows or 0 for n, file in files.items())
    if files:
        run.resumed = CommittedRows(output, files)()
        console.print(f"{total} rows to score" + (f", {run.resumed} of them already committed" if run.resumed else ""))
        with task(console, "reading", "contexts"):  # of the whole input, so that a budget changes no value
            frequencies = ensure_frequencies(job, logs, dict(enumerate(logs.files)), output) if job.detectors else None
        shares = {number: manifest.files[number].share for number in found.chosen}
        limits = Limits(found.stops, shares, deadline)
        score_files(job, logs, files, output, frequencies, run.resumed, console, found.chosen, limits)
    broken = unfinished_files(output, files, found.chosen) if found.stops or deadline is not None else set()
    whole = {number: file for number, file in files.items() if number not in broken}
    with task(console, "counting", "rows", total, "rows"):
        counted = count_scored(output, whole, found.chosen)
    forget_pending(output)
    _account(job, logs, found, whole, counted, manifest, run)
    waiting = [*(files[number] for number in broken), *found.later]
    keys = committed_rows(output) if broken else RowSet()
    committed = {manifest.files[n].path: keys.count(n << 32, (n << 32) + (files[n].rows or 0)) for n in broken}
    tonight = sum(committed.values()) + counted.all_statuses().total() - run.resumed
    run.left = left_of(waiting, committed, run.share, tonight)
    run.skips = {k: n for k, n in {**run.skips, "left": sum(file.rows or 0 for file in waiting)}.items() if n}
    run.seconds["score"] = round(time.perf_counter() - started, 3)
    write_manifest(output, manifest)
    # Only now: had the checkpoint gone first, a crash between would have scored everything again. What it holds of files that
    # are not whole is known to it alone.
    drop_finished(output, [number for number, file in manifest.files.items() if file.state in (PENDING, LEFT)])
    return _Scored(pending.keys() - broken, counted, unfinished(output, manifest, waiting))


def _account(
    job: Job, logs: Logs, found: Registered, whole: Mapping[int, LogFile], counted: Counted, manifest: Manifest, run: Run
) -> None:
    """Put what is scored now into the manifest and the run's record."""
    for entry in manifest.files.values():
        entry.state = LEFT if entry.state == PENDING else entry.state
    for number, file in found.to_score.items():
        if number in whole or not file.rows:
            entry = manifest.files[number]
            entry.state, entry.judged = SCORED, False  # verdicts of a part of its rows are none of the rest
            entry.sampled_out = (file.rows or 0) - counted.statuses.get(number, Counter()).total()
            for known in (manifest.finalized, manifest.escalated):
                known.pop(entry.partition, None)
    statuses = counted.all_statuses()
    run.statuses, run.usage, run.sentences = dict(statuses), counted.usage, counted.sentences.total()
    run.errors = worst_share(statuses)
    engines = {slm.name: slm.engine for slm in job.slms} | {model.name: model.engine for model in job.reading_models}
    run.dtypes = {name: engine.computes_in for name, engine in engines.items()}
    all_rows = sum(file.rows or 0 for file in logs.files)
    outside = sum(file.rows or 0 for file in found.outside)
    sampled_out = sum(manifest.files[number].sampled_out for number in whole)
    skipped = all_rows - sum(file.rows or 0 for file in whole.values()) + sampled_out
    scored = statuses.pop(Status.OK.value, 0)
    run.rows = {"in": all_rows, "scored": scored, "failed": statuses.total(), "skipped": skipped}
    if run.rows["in"] != run.rows["scored"] + run.rows["failed"] + run.rows["skipped"]:
        raise BalanceError(f"the rows of this run do not add up: {run.rows}")
    run.skips = {"sampled_out": sampled_out, "outside": outside}


def _finalize(
    job: Job, output: Folder, manifest: Manifest, run: Run, scored: _Scored | None, console: Console
) -> tuple[dict[str, PartitionStats], list[str]]:
    """Finalise the partitions without verdicts, which are then compared with the history before them; or all.

    Args:
        job: Says how.
        output: The output folder.
        manifest: Its manifest.
        run: This run's record.
        scored: What this run has scored, whose rows it reports; None finalises everything that is whole, and reports the rows
            of the whole folder.
        console: Where progress goes.

    Returns:
        Statistics of every partition, and those that it wrote.
    """
    started = time.perf_counter()
    waiting = unfinished(output, manifest) if scored is None else scored.unfinished
    if scored is None:
        refuse_unfinished(output, manifest, ())
    raw = {place: files for place, files in partitions(output, "raw").items() if hive_path(place) not in waiting}
    chosen = list(raw) if scored is None else without_verdict(raw, manifest)
    if not chosen and (waiting or (scored is not None and not raw)):
        if scored is None:
            raise OutputError(f"output {output.uri}: no partition is whole yet; go on with the `ragassay run` that was begun")
        return {}, []
    with task(console, "deciding", "moments", unit="partitions"):
        stats = fit_output(job, output, waiting)
    decided = decide(job, manifest, run.run_id, stats, chosen)
    run.fit, run.origins = decided.fit, decided.origins
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
    written = count_rows(manifest.files, done.values(), scored.files if scored else None)
    statuses, sentences, skipped = written.statuses, written.sentences, 0
    if scored is not None:  # files whose partitions wait have no verdicts, and are scored all the same
        without = {number for number in scored.files if manifest.files[number].partition in waiting}
        statuses = statuses + scored.counted.all_statuses(without)
        sentences += sum(scored.counted.sentences[number] for number in without)
        skipped = run.rows["skipped"]
    ok, total = statuses[Status.OK.value], statuses.total()
    run.statuses, run.sentences, run.flagged = dict(statuses), sentences, written.flagged
    run.rows = {"in": total + skipped, "scored": ok, "failed": total - ok, "skipped": skipped}
    run.errors = written.errors or run.errors
    for number in written.files & manifest.files.keys():
        manifest.files[number].judged = True
    for partition, part in done.items():
        ok = sum(statuses[Status.OK.value] for statuses in part.statuses.values())
        manifest.finalized[hive_path(partition)] = Verdicts(run.run_id, ok, part.flagged.total())
        manifest.verdict_files[hive_path(partition)] = run.run_id
    run.seconds["finalize"] = round(time.perf_counter() - started, 3)
    return stats, list(chosen)


def _escalates(job: Job, output: Folder, manifest: Manifest, logs: Logs | None, *, coming: bool) -> bool:
    """Whether there is anything to escalate: verdicts that are coming, or that no judge was asked about. The command of that
    name looks in any case, since errors of the judge may have passed."""
    if job.escalate is None:
        return False
    needs_text(manifest, output.uri, "the judge of a cascade")
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
