"""The job: `score`, `fit` and `finalize` on one output folder, under its lock, with a manifest that balances."""

import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
from pyarrow import fs as pafs
from rich.console import Console

from jobs.balance import count_rows
from jobs.config import Job
from jobs.fingerprint import check_fingerprint, fingerprint
from jobs.fit import fit_output, fits_of, raw_passthrough
from jobs.logs import LogFile, Logs, check_logs, check_row_ids, find_logs, unreadable_message
from jobs.partitions import hive_path, partitions
from jobs.plan_finalize import Settings, finalize_partition, score_moments
from jobs.plan_score import CHECKPOINT, needed_resources, score_files
from jobs.progress import CommittedRows, progress
from jobs.ray_session import ray_session
from jobs.storage import Folder, locked, open_folder
from pipeline.engines.weights import prepare
from pipeline.errors import BalanceError, InputError, ModelError, OutputError
from pipeline.moments import merge, quantile
from pipeline.normalize import Fit
from pipeline.prompt import PromptBuilder, needs_question
from pipeline.slm import Slm
from pipeline.split import load_splitter
from schemas.columns import Status
from schemas.manifest import PENDING, SCORED, UNREADABLE, InputFile, Manifest, Run
from schemas.stats import PartitionStats

MANIFEST = "manifest.json"


@dataclass
class _State:
    """An output folder under its lock, and the record of the run that holds it."""

    output: Folder
    manifest: Manifest
    run: Run
    console: Console

    def save(self) -> None:
        self.output.write(MANIFEST, self.manifest.to_json())


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
    output = _existing(output_uri)
    with locked(output), ray_session(job, *needed_resources(job, scoring=False)):
        _refuse_unfinished(output, read_manifest(output), ())
        stats = fit_output(job, output)
        return fits_of(job.normalize, {slm.name: slm.value.value for slm in job.slms}, stats, list(stats))


def read_manifest(output: Folder) -> Manifest:
    """The manifest of an output folder; an empty one where there is none.

    Raises:
        OutputError: It can't be read, or the folder is not empty and not ours.
    """
    text = output.read(MANIFEST)
    if text is None:
        if output.list("", ".parquet"):
            raise OutputError(f"output {output.uri} holds Parquet files but no {MANIFEST}: give a new or empty folder")
        return Manifest()
    try:
        return Manifest.from_json(text)
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{output.uri}/{MANIFEST} can't be read: {error}") from error


def _existing(uri: str) -> Folder:
    output = open_folder(uri)
    if output.read(MANIFEST) is None:
        raise OutputError(f"output {uri} does not exist or has no {MANIFEST}: run `ragassay run INPUT {uri}` first")
    return output


def _job(job: Job, output_uri: str, console: Console, *, input_uri: str | None, finalize: bool) -> Run:
    logs = find_logs(input_uri) if input_uri is not None else None
    question_needed = any(needs_question(slm) for slm in job.slms)
    if logs is not None:
        _check_input(job, logs, question_needed)
    output = open_folder(output_uri) if logs is not None else _existing(output_uri)
    with locked(output):
        now = datetime.now(UTC)
        run = Run(run_id=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}", started=now.isoformat(timespec="seconds"))
        state = _State(output, read_manifest(output), run, console)
        state.manifest.runs.append(run)
        pending: dict[int, LogFile] = {}
        if logs is not None:
            pending = _register(job, logs, state)
        to_finalize = finalize and (logs is None or bool(pending) or bool(_without_verdict(state)))
        session = ray_session(job, *needed_resources(job, bool(pending))) if pending or to_finalize else nullcontext()
        with session:
            if logs is not None:
                _score(job, logs, pending, state, question_needed)
            if to_finalize:
                _finalize(job, state, everything=logs is None)
        run.finished = datetime.now(UTC).isoformat(timespec="seconds")
        state.save()
        return run


def _check_input(job: Job, logs: Logs, question_needed: bool) -> None:
    if logs.unreadable and job.on_bad_file == "stop":
        raise InputError(unreadable_message([f.uri for f in logs.unreadable], logs.unreadable[0].error or ""))
    if not logs.files:
        raise InputError(f"input {logs.uri}: none of its {len(logs.unreadable)} files can be read as Parquet")
    if sum(f.rows or 0 for f in logs.files) == 0:
        raise InputError(f"input {logs.uri} holds no rows")
    check_logs(logs, job.columns, question_needed)


def _register(job: Job, logs: Logs, state: _State) -> dict[int, LogFile]:
    """Enter the input's files in the manifest; returns those to score, by number.

    Everything that can be checked without an engine is checked before the manifest changes.
    """
    manifest = state.manifest
    known = {f.path: number for number, f in enumerate(manifest.files)}
    print_now = fingerprint(job)
    has_scores = any(f.state == SCORED for f in manifest.files)
    if has_scores or CommittedRows(state.output, range(len(manifest.files)))():
        check_fingerprint(manifest.fingerprint, print_now, state.output.uri)
    _refuse_overlap(logs, state.output)
    by_uri = {f.uri: f.path for f in manifest.files}
    fresh, mended = [], []
    for file in [*logs.files, *logs.unreadable]:
        old = manifest.files[known[file.path]] if file.path in known else None
        if old is None and file.uri in by_uri:
            raise OutputError(
                f"input file {file.uri} is known to output {state.output.uri} as {by_uri[file.uri]!r} and would be scored "
                f"again as {file.path!r}: name INPUT as it was named before"
            )
        if old is None:
            fresh.append(file)
        elif old.state == UNREADABLE:
            mended.append(file)
        elif (old.uri, old.size) != (file.uri, file.size):
            if old.state == SCORED or CommittedRows(state.output, [known[file.path]])():
                raise OutputError(
                    f"input file {file.uri} ({file.size} bytes) is not the {old.uri} ({old.size} bytes) of which output "
                    f"{state.output.uri} holds scores: give changed logs a new file name, or another OUTPUT"
                )
            mended.append(file)
    _refuse_unfinished(state.output, manifest, {f.path for f in logs.files})
    _refuse_other_types(state.output, logs)
    to_score = [f for f in logs.files if f.path not in known or manifest.files[known[f.path]].state != SCORED]
    check_row_ids(logs, to_score, job.columns, keep_bad=job.on_bad_file == "skip")
    if to_score:
        load_splitter(job.splitter.name, job.splitter.language)
        for slm in job.slms:
            _check_model(slm)
    manifest.fingerprint = print_now
    for file in mended:
        manifest.files[known[file.path]] = _entry(file)
    for file in fresh:
        known[file.path] = len(manifest.files)
        manifest.files.append(_entry(file))
    state.run.files_skipped = {f.uri: f.error or "" for f in logs.unreadable}
    state.save()
    return {known[f.path]: f for f in to_score}


def _refuse_overlap(logs: Logs, output: Folder) -> None:
    """An output below its own input would be read as logs by the next run.

    Raises:
        InputError: A file of the input lies in the output folder.
    """
    inside = [f.uri for f in logs.files if f.fs_path.startswith(output.root + "/") and type(logs.fs) is type(output.fs)]
    if inside:
        raise InputError(f"input {logs.uri} holds files of the output folder, such as {inside[0]}: give an OUTPUT outside it")


def _entry(file: LogFile) -> InputFile:
    state = UNREADABLE if file.error else PENDING
    return InputFile(file.path, file.uri, file.size, file.rows, file.partition_path, state, file.error)


def _refuse_unfinished(output: Folder, manifest: Manifest, paths: Collection[str]) -> None:
    """A broken run's rows stand in `raw/`, and only its checkpoint knows which: it has to be ended before anything else.

    Raises:
        OutputError: There is one, over other files than these.
    """
    left = [n for n, f in enumerate(manifest.files) if f.state == PENDING and f.path not in paths]
    selector = pafs.FileSelector(output.path(CHECKPOINT), allow_not_found=True)
    if left and output.fs.get_file_info(selector):
        rows = CommittedRows(output, left)()
        more = f" and {len(left) - 1} more files" if len(left) > 1 else ""
        raise OutputError(
            f"output {output.uri} holds a run that broke off over {manifest.files[left[0]].uri}{more} ({rows} rows committed): "
            "finish it first, with `ragassay run` and an INPUT that has those files, or give another OUTPUT"
        )


def _refuse_other_types(output: Folder, logs: Logs) -> None:
    """Columns that don't fit those of earlier nights in the same partition are refused before anything is scored.

    Raises:
        OutputError: There is one.
    """
    wanted = {f.partition_path for f in logs.files}
    extra = pa.schema([f for f in logs.passthrough if f.name not in logs.partition_keys])
    for place, files in partitions(output, "raw").items():
        if hive_path(place) in wanted:
            raw_passthrough(output.fs, files, [extra])


def _check_model(slm: Slm) -> None:
    """Find the model, load its tokenizer and find its label tokens, so that a wrong name fails here and not in an actor."""
    from transformers import AutoTokenizer

    model = prepare(slm.model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=slm.revision, trust_remote_code=slm.trust_remote_code)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"SLM {slm.name!r}: model {slm.model!r} is unknown or can't be loaded ({reason}). Give a hub id that this machine "
            "reaches, a local folder, a GGUF file, or 'embedded'"
        ) from error
    PromptBuilder(slm, tokenizer).prefix("q", ["c"])


def _score(job: Job, logs: Logs, pending: dict[int, LogFile], state: _State, question_needed: bool) -> None:
    run, started = state.run, time.perf_counter()
    files = {number: file for number, file in pending.items() if file.rows}
    total = sum(file.rows or 0 for file in files.values())
    if files:
        run.resumed = CommittedRows(state.output, files)()
        state.console.print(f"{total} rows to score" + (f", {run.resumed} of them already committed" if run.resumed else ""))
        with progress(CommittedRows(state.output, files), total, state.console):
            score_files(job, logs, files, state.output, question_needed=question_needed)
    all_rows = sum(file.rows or 0 for file in logs.files)
    statuses, usage, sentences = count_rows(state.output, files)
    run.statuses, run.usage, run.sentences = dict(statuses), usage, sentences
    scored = statuses.pop(Status.OK.value, 0)
    run.rows = {"in": all_rows, "scored": scored, "failed": sum(statuses.values()), "skipped": all_rows - total}
    if run.rows["in"] != run.rows["scored"] + run.rows["failed"] + run.rows["skipped"]:
        raise BalanceError(f"the rows of this run do not add up: {run.rows}")
    for number in pending:
        state.manifest.files[number].state = SCORED
        state.manifest.finalized.pop(state.manifest.files[number].partition, None)
    run.seconds["score"] = round(time.perf_counter() - started, 3)
    state.save()
    # Only now: had the checkpoint gone first, a crash between would have scored everything again. And only where no other
    # file is pending: its uncommitted rows, if there are any, are known to the checkpoint alone.
    if all(f.state != PENDING for f in state.manifest.files):
        state.output.delete(CHECKPOINT)


def _finalize(job: Job, state: _State, *, everything: bool) -> None:
    """Finalise all partitions, or those without verdicts."""
    run, started = state.run, time.perf_counter()
    _refuse_unfinished(state.output, state.manifest, ())
    raw = partitions(state.output, "raw")
    chosen = list(raw) if everything else _without_verdict(state)
    stats = fit_output(job, state.output)
    # A night whose rows all failed has nothing to fit; its rows are written all the same, without a verdict.
    judged = sum(stats[p].rows.get(Status.OK.value, 0) for p in chosen)
    values = {slm.name: slm.value.value for slm in job.slms}
    fits = fits_of(job.normalize, values, stats, chosen) if judged else {}
    records = {name: {**asdict(fit), "value": values[name]} for name, fit in fits.items()}
    run.fit = {"source": job.normalize.source, "members": records}
    run.seconds["fit"] = round(time.perf_counter() - started, 3)
    started = time.perf_counter()
    settings = Settings(values, fits, job.aggregate, None, run.run_id)
    tau, source = _threshold(job, state, settings, raw, chosen) if judged else (None, "none: no row could be scored")
    settings = replace(settings, threshold=tau)
    run.threshold = {"value": tau, "source": source}
    for partition in chosen:  # a crash from here on leaves them to be finalised anew, not half old and half new
        state.manifest.finalized.pop(hive_path(partition), None)
    state.save()
    run.flagged = _write_scored(state, settings, {p: raw[p] for p in chosen}, stats)
    run.partitions = sorted(map(hive_path, chosen))
    if everything:
        _rows_of_all(state, stats)
    for partition in chosen:
        state.manifest.finalized[hive_path(partition)] = run.run_id
    run.seconds["finalize"] = round(time.perf_counter() - started, 3)


def _without_verdict(state: _State) -> list[str]:
    """Partitions of `raw/` that are new, or of a run that died before it finalised them."""
    return [p for p in partitions(state.output, "raw") if hive_path(p) not in state.manifest.finalized]


def _threshold(
    job: Job, state: _State, settings: Settings, raw: dict[str, list[str]], chosen: Sequence[str]
) -> tuple[float, str]:
    import ray

    threshold = job.threshold
    if threshold.value is not None:
        return threshold.value, f"value in the job file, measured on {threshold.measured_on or 'nothing it names'}"
    assert threshold.quantile is not None
    names = chosen if threshold.of == "run" else list(raw)
    remote = ray.remote(num_cpus=0.5)(score_moments)
    moments = merge(ray.get([remote.remote(state.output.fs, raw[p], settings) for p in sorted(names)]))
    source = f"quantile {threshold.quantile:g} of the {moments.count} responses of " + (
        "this run" if threshold.of == "run" else "the whole output folder"
    )
    return quantile(moments, threshold.quantile), source


def _write_scored(state: _State, settings: Settings, raw: dict[str, list[str]], stats: dict[str, PartitionStats]) -> int:
    import ray

    remote = ray.remote(num_cpus=0.5)(finalize_partition)
    tasks = {
        p: remote.remote(
            state.output.fs, files, state.output.path("/".join(filter(None, ["scored", p, "part-0.parquet"]))), settings
        )
        for p, files in raw.items()
    }
    flagged = 0
    for partition, task in tasks.items():
        done = ray.get(task)
        flagged += done.flagged
        rows_in = sum(f.rows or 0 for f in state.manifest.files if f.partition == hive_path(partition) and f.state == SCORED)
        if not done.rows == rows_in == sum(stats[partition].rows.values()):
            raise BalanceError(f"partition {partition!r}: {rows_in} rows in, {done.rows} rows in scored/")
    return flagged


def _rows_of_all(state: _State, stats: dict[str, PartitionStats]) -> None:
    """What `finalize` alone reports: the rows of the whole output folder."""
    statuses: Counter[str] = Counter()
    for part in stats.values():
        statuses.update(part.rows)
    ok, total = statuses[Status.OK.value], sum(statuses.values())
    state.run.statuses = dict(statuses)
    state.run.sentences = sum(part.sentences for part in stats.values())
    state.run.rows = {"in": total, "scored": ok, "failed": total - ok, "skipped": 0}
