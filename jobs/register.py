"""Enter an input in the manifest of an output folder: what is new, what is known, and what must not be mixed."""

from collections.abc import Collection

import pyarrow as pa
from pyarrow import fs as pafs

from jobs.checkpoint import CHECKPOINT, CommittedRows
from jobs.config import Job
from jobs.fingerprint import check_fingerprint, fingerprint
from jobs.fit import raw_passthrough
from jobs.logs import LogFile, Logs, check_logs, check_row_ids, unreadable_message
from jobs.partitions import hive_path, partitions
from jobs.state import State
from jobs.storage import Folder
from pipeline.detectors.detect import load_ner
from pipeline.detectors.embedding import load_encoder
from pipeline.engines.merge import load_tokenizer, prepare_slm
from pipeline.errors import InputError, OutputError
from pipeline.prompt import PromptBuilder
from pipeline.split import load_splitter
from schemas.manifest import PENDING, SCORED, UNREADABLE, InputFile, Manifest


def check_input(job: Job, logs: Logs, question_needed: bool) -> None:
    """Refuse an input that can't be read as it stands.

    Raises:
        InputError: Files can't be read, there are no rows, or columns are missing or of wrong types.
    """
    if logs.unreadable and job.on_bad_file == "stop":
        raise InputError(unreadable_message([f.uri for f in logs.unreadable], logs.unreadable[0].error or ""))
    if not logs.files:
        raise InputError(f"input {logs.uri}: none of its {len(logs.unreadable)} files can be read as Parquet")
    if sum(f.rows or 0 for f in logs.files) == 0:
        raise InputError(f"input {logs.uri} holds no rows")
    check_logs(logs, job.columns, question_needed)


def check_models(job: Job) -> None:
    """Find every model that the job names, and load what is small of it, so that a wrong name fails here and not in a worker.

    Weights that need it are made ready, once: dequantised, or merged with their adapter.

    Raises:
        RagassayError: One can't be found or used.
    """
    load_splitter(job.splitter.name, job.splitter.language)
    for slm in job.slms:
        PromptBuilder(slm, load_tokenizer(slm)).encode([("q", ["c"], ["s"])])  # finds its label tokens too
        prepare_slm(slm)
    for detector in job.detectors:
        if detector.uses_entities and detector.ner is not None:
            load_ner(detector.ner)
        if detector.uses_similarity and detector.similarity == "embedding":
            load_encoder(detector.model, 1)


def register(job: Job, logs: Logs, state: State) -> dict[int, LogFile]:
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
    refuse_unfinished(state.output, manifest, {f.path for f in logs.files})
    _refuse_other_types(state.output, logs)
    to_score = [f for f in logs.files if f.path not in known or manifest.files[known[f.path]].state != SCORED]
    check_row_ids(logs, to_score, job.columns, keep_bad=job.on_bad_file == "skip")
    if to_score:
        check_models(job)
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


def refuse_unfinished(output: Folder, manifest: Manifest, paths: Collection[str]) -> None:
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
