"""Enter an input in the manifest of an output folder: what is new, what is known, and what must not be mixed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.config import Job
from ragassay.jobs.input import (
    LogFile,
    Logs,
    check_logs,
    check_row_ids,
    check_types,
    column_fits,
    parquet_file,
    same_place,
    unreadable_message,
)
from ragassay.jobs.input.types import is_list, is_text
from ragassay.jobs.output.fingerprint import check_fingerprint, fingerprint
from ragassay.jobs.output.partitions import hive_path, partitions
from ragassay.jobs.output.passthrough import merged_passthrough, raw_schemas
from ragassay.jobs.output.sealed import sealed_among
from ragassay.jobs.score.checkpoint import CHECKPOINT, CommittedRows
from ragassay.jobs.storage import Folder
from ragassay.pipeline.engines.checked import check_once
from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_slm
from ragassay.pipeline.engines.server_labels import ask
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.served import asker_of
from ragassay.pipeline.split import load_splitter
from ragassay.pipeline.uncertainty.config import ReadingModel
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.schemas.manifest import PENDING, SCORED, UNREADABLE, InputFile, Manifest


def check_input(job: Job, logs: Logs) -> None:
    """Refuse an input that can't be read as it stands.

    Raises:
        InputError: Files can't be read, there are no rows, or columns are missing or of wrong types.
    """
    if logs.unreadable and job.on_bad_file == "stop":
        raise InputError(unreadable_message([f.uri for f in logs.unreadable], logs.unreadable[0].error or ""))
    if logs.source is not None and logs.source.since is not None and not (logs.files or logs.unreadable):
        return  # nothing came in
    if not logs.files and logs.unreadable:
        raise InputError(f"input {logs.uri}: none of its {len(logs.unreadable)} files can be read")
    if sum(f.rows or 0 for f in logs.files) == 0:
        raise InputError(f"input {logs.uri} holds no rows")
    check_logs(logs, job.columns, job.question_needed)
    for member in (member for member in job.uncertainty if member.score.of_samples):
        place = logs.passthrough.get_field_index(member.samples)
        kind = logs.passthrough.field(place).type if place >= 0 else None
        if kind is None or not (pa.types.is_null(kind) or (is_list(kind) and is_text(kind.value_type))):
            found = "there is none" if place < 0 else f"it holds {kind}"
            raise InputError(
                f"input {logs.uri}: {member.score.value} of {member.name!r} compares the answers in column {member.samples!r}, "
                f"a list of strings, and {found}: name the column in its `samples`"
            )


def check_models(job: Job) -> None:
    """Find every model that the job names, and load what is small of it, so that a wrong name fails here and not in a worker.

    Weights that need it are made ready, once: dequantised, or merged with their adapter.

    Raises:
        RagassayError: One can't be found or used.
    """
    load_splitter(job.splitter.name, job.splitter.language)
    for slm in [*job.slms, *([job.escalate.to] if job.escalate else [])]:
        check_slm(slm)
    for model in job.reading_models:
        check_once(model, partial(_encode_answer, model))
        prepare_slm(model)
    for detector in job.detectors:
        detector.prepare()


def check_slm(slm: Slm) -> None:
    """Find the model of one SLM, and make its weights ready. See `check_models`."""
    if slm.engine.SERVED:
        ask(asker_of(slm), ["Answer Yes or No."])  # a wrong address, key or name fails here
        return
    check_once(slm, partial(_encode_question, slm))
    prepare_slm(slm)


def _encode_question(slm: Slm) -> None:
    PromptBuilder(slm, load_tokenizer(slm)).encode([("q", ["c"], ["s"])])  # finds its label tokens too


def _encode_answer(model: ReadingModel) -> None:
    answer_encoder(model, load_tokenizer(model)).encode([("q", ["c"], ["t"])])


@dataclass(frozen=True)
class Registered:
    """An input, as the manifest is to have it.

    Attributes:
        fingerprint: What its scores depend on.
        files: Those that the manifest is to hold, by number.
        unsealed: Of those that it has sealed, the ones that were written anew since, as it is to have them.
        to_score: Those of the input that are not scored yet, by number.
        touched: Files that were written anew since they were scored, and whose size and footer are the same.
        skipped: Unreadable files, with the reason.
    """

    fingerprint: dict[str, Any]
    files: dict[int, InputFile]
    unsealed: dict[int, InputFile]
    to_score: dict[int, LogFile]
    touched: list[str]
    skipped: dict[str, str]


def register(job: Job, logs: Logs, output: Folder, manifest: Manifest) -> Registered:
    """Tell what of an input is new; all that can be checked without an engine is checked.

    Raises:
        RagassayError: The input can't be read or scored, or does not fit what the output holds.
    """
    print_now = fingerprint(job)
    has_scores = manifest.sealed.files or any(f.state == SCORED for f in manifest.files.values())
    if has_scores or CommittedRows(output, manifest.files)():
        check_fingerprint(manifest.fingerprint, print_now, output.uri)
    entries = {**manifest.files, **sealed_among(output, manifest, [*logs.files, *logs.unreadable])}
    known, fresh, mended = _compare(logs, output, entries)
    refuse_unfinished(output, manifest, {entries[known[f.path]].path for f in logs.files if f.path in known})
    to_score = [f for f in logs.files if f.path not in known or entries[known[f.path]].state != SCORED]
    check_types(logs, to_score, logs.passthrough)
    _refuse_other_types(output, logs, to_score)
    check_row_ids(logs, to_score, job.columns, keep_bad=job.on_bad_file == "skip")
    if to_score:
        check_models(job)
    anew = {file.path for file in mended}
    touched = _touched(output, entries, {known[f.path]: f for f in logs.files if f.path in known and f.path not in anew})
    new = dict(enumerate(map(_entry, fresh), manifest.registered))
    known |= {entry.path: number for number, entry in new.items()}
    new |= {known[file.path]: _entry(file) for file in mended}
    for file in logs.files:  # an older manifest lacks them; and what was touched is told once
        number = known[file.path]
        old = new.get(number) or entries[number]
        if (old.digest, old.mtime) != (file.digest, file.mtime):
            new[number] = replace(old, digest=file.digest, mtime=file.mtime)
    unsealed = {number: new.pop(number) for number in list(new) if number in entries and number not in manifest.files}
    skipped = {f.uri: f.error or "" for f in logs.unreadable}
    to_score_by_number = {known[f.path]: f for f in to_score}
    return Registered(print_now, {**manifest.files, **new}, unsealed, to_score_by_number, touched, skipped)


def _compare(
    logs: Logs, output: Folder, entries: Mapping[int, InputFile]
) -> tuple[dict[str, int], list[LogFile], list[LogFile]]:
    """Tell the input's files that are known from new ones, and from those that changed.

    Args:
        logs: The input.
        output: The output folder.
        entries: What is known of them, and may be of others, by number.

    Returns:
        Numbers of the known files by path, new files, and files whose entry is to be written anew.

    Raises:
        OutputError: A file of which there are scores has changed, or one that is not scored yet has another path now.
    """
    by_path = {f.path: number for number, f in entries.items()}
    by_place = cache(lambda: {same_place(f.uri): n for n, f in entries.items()})  # slow: only where a path is new
    known: dict[str, int] = {}
    fresh, mended = [], []
    for file in [*logs.files, *logs.unreadable]:
        number = by_path[file.path] if file.path in by_path else by_place().get(same_place(file.uri))
        if number is None:
            fresh.append(file)
            continue
        old = entries[number]
        if old.path != file.path and old.state == PENDING:
            raise OutputError(
                f"input file {file.uri} is known to output {output.uri} as {old.path!r} and would be scored "
                f"again as {file.path!r}: name INPUT as it was named before"
            )
        known[file.path] = number
        if old.state == UNREADABLE:
            mended.append(file)
        elif not _is_same(old, file):
            if old.state == SCORED or CommittedRows(output, [number])():
                raise OutputError(
                    f"input file {file.uri} ({file.size} bytes) is not the {old.uri} ({old.size} bytes) of which output "
                    f"{output.uri} holds scores{', though as large' if file.size == old.size else ''}: give changed logs a new "
                    "file name, or another OUTPUT"
                )
            mended.append(file)
    return known, fresh, mended


def _is_same(old: InputFile, file: LogFile) -> bool:
    """Whether a file is the one that was registered; an entry without a digest tells its size only."""
    if old.size != file.size or (old.uri != file.uri and same_place(old.uri) != same_place(file.uri)):
        return False
    return old.digest is None or file.digest is None or old.digest == file.digest


def _touched(output: Folder, entries: Mapping[int, InputFile], files: Mapping[int, LogFile]) -> list[str]:
    """Files of which there are scores, and whose time has changed and nothing else: copies, or rows changed in place."""
    known = ((number, entries[number], file) for number, file in files.items())
    other = [(number, old, file) for number, old, file in known if old.mtime and file.mtime and old.mtime != file.mtime]
    pending = [number for number, old, _ in other if old.state == PENDING]
    begun = bool(pending) and CommittedRows(output, pending)() > 0
    return [file.uri for _, old, file in other if old.state == SCORED or begun]


def _entry(file: LogFile) -> InputFile:
    state = UNREADABLE if file.error else PENDING
    return InputFile(
        file.path, file.uri, file.size, file.rows, file.partition_path, state, file.error, file.digest, mtime=file.mtime
    )


def refuse_unfinished(output: Folder, manifest: Manifest, paths: Collection[str]) -> None:
    """A broken run's rows stand in `raw/`, and only its checkpoint knows which: it has to be ended before anything else.

    Raises:
        OutputError: There is one, over other files than these.
    """
    left = [n for n, f in manifest.files.items() if f.state == PENDING and f.path not in paths]
    selector = pafs.FileSelector(output.path(CHECKPOINT), allow_not_found=True)
    if left and output.fs.get_file_info(selector):
        rows = CommittedRows(output, left)()
        more = f" and {len(left) - 1} more files" if len(left) > 1 else ""
        raise OutputError(
            f"output {output.uri} holds a run that broke off over {manifest.files[left[0]].uri}{more} ({rows} rows committed): "
            "finish it first, with `ragassay run` and an INPUT that has those files, or give another OUTPUT"
        )


def _refuse_other_types(output: Folder, logs: Logs, files: Sequence[LogFile]) -> None:
    """Columns that don't fit those of earlier nights in the same partition are refused before anything is scored.

    Raises:
        OutputError, InputError: There is one.
    """
    extra = pa.schema([f for f in logs.passthrough if f.name not in logs.partition_keys])
    by_partition: dict[str, list[LogFile]] = {}
    for file in files:
        by_partition.setdefault(file.partition_path, []).append(file)
    for place, raw in partitions(output, "raw").items():
        tonight = by_partition.get(hive_path(place))
        if tonight is None:
            continue
        schemas = raw_schemas(output.fs, raw)
        both = merged_passthrough([*schemas, extra])
        check_types(logs, tonight, both)
        for path, schema in zip(raw, schemas, strict=True):
            for field in schema:
                kind = both.field(field.name).type
                if not column_fits(output.fs, parquet_file(path), field, kind):
                    mine = (
                        f"{extra.field(field.name).type} in the logs"
                        if field.name in extra.names
                        else "of other types elsewhere"
                    )
                    raise OutputError(
                        f"column {field.name!r} is {field.type} in partition {hive_path(place)!r} of output {output.uri}, and "
                        f"{mine}: {kind}, which would hold both, can't hold its values. "
                        "Cast it, rename it, or give another OUTPUT"
                    )
