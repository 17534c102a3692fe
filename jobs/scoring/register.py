"""An input beside the manifest of an output folder: what is new, what is known, and what must not be mixed."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.jobs.input import (
    LogFile,
    Logs,
    check_logs,
    check_row_ids,
    check_types,
    column_fits,
    parquet_file,
    same_place,
    unreadable_error,
)
from ragassay.jobs.input.types import is_list, is_text, plain_type
from ragassay.jobs.output.commits import has_pending
from ragassay.jobs.output.fingerprint import check_fingerprint, fingerprint
from ragassay.jobs.output.partition_filter import check_keys, none_matches
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.passthrough import merged_passthrough, raw_schemas
from ragassay.jobs.output.scored_dataset import open_raw
from ragassay.jobs.output.sealed import sealed_among
from ragassay.jobs.scoring import errors
from ragassay.jobs.scoring.backfill import WHOLE_INPUT, Backfill, take_files
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, CommittedRows
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.scoring.stages import carried_columns
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.engines.checked import check_once
from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_slm
from ragassay.pipeline.engines.server_labels import ask
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.served import asker_of
from ragassay.pipeline.text.split import load_splitter
from ragassay.pipeline.uncertainty.config import ReadingModel
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.schemas.columns import passthrough_name
from ragassay.schemas.manifest import LEFT, PENDING, SCORED, UNREADABLE, InputFile, Manifest


def check_input(job: Job, logs: Logs) -> None:
    """Refuse an input that can't be read as it stands.

    Raises:
        InputError: Files can't be read, there are no rows, or columns are missing or of wrong types.
    """
    if logs.unreadable and not job.input.skips_bad_files:
        raise unreadable_error([f.uri for f in logs.unreadable], logs.unreadable[0].error or "")
    if logs.source is not None and logs.source.since is not None and not (logs.files or logs.unreadable):
        logs.partition_keys = list(logs.source.partitioned_by)
        return  # nothing came in
    if not logs.files and logs.unreadable:
        raise InputError(errors.NO_READABLE_FILE, uri=logs.uri, files=len(logs.unreadable))
    if sum(f.rows or 0 for f in logs.files) == 0:
        raise InputError(errors.NO_ROWS, uri=logs.uri)
    check_logs(logs, job.input.columns, job.members.need_question)
    carried_columns(job.output, logs)
    _check_languages(job.splitting.language_column, logs)
    for member in (member for member in job.members.uncertainty if member.score.of_samples):
        place = logs.passthrough.get_field_index(member.samples)
        kind = logs.passthrough.field(place).type if place >= 0 else None
        if kind is None or not (pa.types.is_null(kind) or (is_list(kind) and is_text(kind.value_type))):
            found = "there is none" if place < 0 else f"it holds {kind}"
            raise InputError(
                errors.NO_SAMPLES,
                uri=logs.uri,
                score=member.score.value,
                member=member.name,
                column=member.samples,
                found=found,
            )


def _check_languages(column: str | None, logs: Logs) -> None:
    place = 0 if column is None else logs.passthrough.get_field_index(passthrough_name(column))
    if place < 0:
        raise InputError(
            errors.NO_LANGUAGE_COLUMN, uri=logs.uri, column=column, columns=", ".join(logs.passthrough.names) or "none"
        )
    kind = None if column is None else plain_type(logs.passthrough.field(place).type)
    if kind not in (None, pa.null(), pa.string(), pa.large_string()):
        raise InputError(errors.LANGUAGE_COLUMN_TYPE, uri=logs.uri, column=column, type=kind)


def check_models(job: Job) -> None:
    """Find every model that the job names, and load what is small of it, so that a wrong name fails here and not in a worker.

    Weights that need it are made ready, once: dequantised, or merged with their adapter.

    Raises:
        RagassayError: One can't be found or used.
    """
    load_splitter(job.splitting.pipeline, job.splitting.language)
    for slm in job.scoring_slms:
        check_slm(slm)
    for model in job.members.reading_models:
        check_once(model, partial(_encode_answer, model))
        prepare_slm(model)
    for detector in job.members.detectors:
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
class Registration:
    """An input beside the manifest of an output folder: what is new of it, and what is to be scored.

    Attributes:
        fingerprint: What its scores depend on.
        entries: Entries of the manifest that are new or other than they were, by number.
        unsealed: Those of which the manifest has sealed the entry.
        reopened: Hive path -> numbers of scored files in it of which more rows are to be scored.
        selection: The files to score, and which of their rows.
        touched: Files that were written anew since they were scored, and whose size and footer are the same.
        skipped: Unreadable files, with the reason.
    """

    fingerprint: dict[str, Any]
    entries: dict[int, InputFile]
    unsealed: dict[int, InputFile]
    reopened: dict[str, list[int]]
    selection: Selection
    touched: list[str]
    skipped: dict[str, str]


def match_input(job: Job, logs: Logs, output: Folder, manifest: Manifest, backfill: Backfill = WHOLE_INPUT) -> Registration:
    """Compare an input with the manifest of an output folder. Nothing is written, and no engine is needed.

    Raises:
        RagassayError: The input can't be read or scored, or does not fit what the output holds.
    """
    print_now = fingerprint(job)
    has_scores = manifest.sealed.files or any(f.state == SCORED for f in manifest.files.values())
    if has_scores or CommittedRows(output, manifest.files)():
        check_fingerprint(manifest.fingerprint, print_now, output.uri)
    check_keys(backfill.conditions, logs.partition_keys, logs.uri)
    entries = {**manifest.files, **sealed_among(output, manifest, [*logs.files, *logs.unreadable])}
    known, fresh, mended = _compare(logs, output, entries)
    refuse_unfinished(output, manifest, {entries[known[f.path]].path for f in logs.files if f.path in known})
    meant = {file.path for file in [*logs.files, *logs.unreadable] if backfill.wants(file)}
    _refuse_none_meant(backfill, logs, meant)
    by_path = {path: (number, entries[number]) for path, number in known.items()}
    taken = take_files(backfill, logs, output, job.input.columns.row_id, by_path)
    for file in (file for file in [*taken.files, *taken.deferred] if file.path in known):
        _refuse_other_path(output, entries[known[file.path]], file)
    check_types(logs, taken.files, logs.passthrough)
    _refuse_other_types(output, logs, carried_columns(job.output, logs), taken.files)
    anew = {file.path for file in mended}
    names = meant & {file.path for file in [*taken.files, *logs.unreadable]}
    stale = anew - names  # entered anew when their turn comes
    fresh, mended = ([file for file in files if file.path in names] for files in (fresh, mended))
    touched = _touched(output, entries, {known[f.path]: f for f in logs.files if f.path in known and f.path not in anew})
    new = dict(enumerate(map(_entry, fresh), manifest.registered))
    known |= {entry.path: number for number, entry in new.items()}
    new |= {known[file.path]: _entry(file) for file in mended}
    for file in (file for file in logs.files if file.path in known.keys() - stale):
        number = known[file.path]
        old = new.get(number) or entries[number]
        if (old.digest, old.mtime) != (file.digest, file.mtime):  # so that it is reported once
            new[number] = replace(old, digest=file.digest, mtime=file.mtime)
    for file in taken.files:  # `sampled_out` is of what `scored/` has until it is done
        number = known[file.path]
        new[number] = replace(new.get(number) or entries[number], state=PENDING, share=taken.shares[file.path])
    unsealed = {number: new.pop(number) for number in list(new) if number in entries and number not in manifest.files}
    selection = Selection(
        logs,
        files={known[file.path]: file for file in taken.files},
        stops={known[path]: stop for path, stop in taken.stops.items()},
        shares={known[file.path]: taken.shares[file.path] for file in taken.files},
        samples={known[path]: rows.shift(known[path] << 32) for path, rows in taken.samples.items()},
        deferred=taken.deferred,
        outside=[file for file in logs.files if file.path not in meant],
    )
    return Registration(
        fingerprint=print_now,
        entries=new,
        unsealed=unsealed,
        reopened=_reopened({number: entries[number] for number in selection.files if number in entries}),
        selection=selection,
        touched=touched,
        skipped={f.uri: f.error or "" for f in logs.unreadable if f.path in meant},
    )


def check_selection(job: Job, selection: Selection) -> None:
    """Check what takes longer: the ids of all rows that are to be scored, and the models.

    Raises:
        RagassayError: Ids are missing or occur twice; a model can't be found or used.
    """
    files = list(selection.files.values())
    check_row_ids(selection.logs, files, job.input.columns, keep_bad=job.input.skips_bad_files)
    if files:
        check_models(job)


def _reopened(entries: Mapping[int, InputFile]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for number, entry in entries.items():
        if entry.state == SCORED:
            numbers.setdefault(entry.partition, []).append(number)
    return numbers


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
        if old.state in (PENDING, LEFT):
            _refuse_other_path(output, old, file)
        known[file.path] = number
        if old.state == UNREADABLE:
            mended.append(file)
        elif not _is_same(old, file):
            if old.state == SCORED or CommittedRows(output, [number])():
                raise OutputError(
                    errors.CHANGED_FILE,
                    uri=file.uri,
                    size=file.size,
                    was=old.uri,
                    was_size=old.size,
                    output=output.uri,
                    though=", though as large" if file.size == old.size else "",
                )
            mended.append(file)
    return known, fresh, mended


def _refuse_none_meant(backfill: Backfill, logs: Logs, meant: Collection[str]) -> None:
    """Refuse conditions that no partition fulfils; of a table, of which only what came in since is read, none may be new."""
    there = {file.partition_path for file in [*logs.files, *logs.unreadable]}
    if backfill.conditions and not meant and there and (logs.source is None or logs.source.since is None):
        raise InputError(errors.NO_PARTITION, uri=logs.uri, reason=none_matches(backfill.conditions, there))


def _refuse_other_path(output: Folder, old: InputFile, file: LogFile) -> None:
    """A file's path is in the ids of its rows, and so in which of them a sample takes: what scores on must have the same.

    Raises:
        OutputError: It was another one.
    """
    if old.path != file.path and old.state != UNREADABLE:
        raise OutputError(errors.OTHER_PATH, uri=file.uri, output=output.uri, was=old.path, path=file.path)


def _is_same(old: InputFile, file: LogFile) -> bool:
    """Whether a file is the one that was registered; an entry without a digest tells its size only."""
    if old.size != file.size or (old.uri != file.uri and same_place(old.uri) != same_place(file.uri)):
        return False
    return old.digest is None or file.digest is None or old.digest == file.digest


def _touched(output: Folder, entries: Mapping[int, InputFile], files: Mapping[int, LogFile]) -> list[str]:
    """Files of which there are scores, and whose time has changed and nothing else: copies, or rows changed in place."""
    known = ((number, entries[number], file) for number, file in files.items())
    other = [(number, old, file) for number, old, file in known if old.mtime and file.mtime and old.mtime != file.mtime]
    pending = [number for number, old, _ in other if old.state in (PENDING, LEFT)]
    begun = bool(pending) and CommittedRows(output, pending)() > 0
    return [file.uri for _, old, file in other if old.state == SCORED or begun]


def _entry(file: LogFile) -> InputFile:
    state = UNREADABLE if file.error else PENDING
    return InputFile(
        file.path, file.uri, file.size, file.rows, file.partition_path, state, file.error, file.digest, mtime=file.mtime
    )


def refuse_unfinished(output: Folder, manifest: Manifest, paths: Collection[str]) -> None:
    """A broken run's rows stand in `raw/`, and only its checkpoint knows which: it has to be ended before anything else.

    One that has committed nothing, and has no commit half done, left nothing there.

    Raises:
        OutputError: There is one, over other files than these.
    """
    left = [n for n, f in manifest.files.items() if f.state == PENDING and f.path not in paths]
    rows = CommittedRows(output, left)() if left else 0
    if rows or (left and has_pending(output, CHECKPOINT)):
        more = f" and {len(left) - 1} more files" if len(left) > 1 else ""
        raise OutputError(errors.UNFINISHED_RUN, output=output.uri, file=manifest.files[left[0]].uri, more=more, rows=rows)


def waiting_partitions(manifest: Manifest, begun: Container[int], deferred: Iterable[LogFile] = ()) -> set[str]:
    """Hive paths of partitions that are not whole: a budget ran out over a file of theirs, or others of them wait for a run.

    Args:
        manifest: Of the output folder.
        begun: Numbers of the files of which the checkpoint holds rows.
        deferred: Files that wait for a run.
    """
    waiting = {f.partition for n, f in manifest.files.items() if f.state in (PENDING, LEFT) and n in begun}
    return waiting | {f.partition_path for f in deferred}


def _refuse_other_types(output: Folder, logs: Logs, carried: pa.Schema, files: Sequence[LogFile]) -> None:
    """Columns that don't fit those of earlier nights in the same partition are refused before anything is scored.

    Raises:
        OutputError, InputError: There is one.
    """
    extra = pa.schema([f for f in carried if f.name not in logs.partition_keys])
    by_partition: dict[str, list[LogFile]] = {}
    for file in files:
        by_partition.setdefault(file.partition_path, []).append(file)
    for place, raw in open_raw(output).partitions.items():
        tonight = by_partition.get(hive_path(place))
        if tonight is None:
            continue
        schemas = raw_schemas(raw)
        both = merged_passthrough([*schemas.values(), extra])
        check_types(logs, tonight, both)
        for stored, schema in schemas.items():
            for field in schema:
                kind = both.field(field.name).type
                if not column_fits(output.fs, parquet_file(stored.path), field, kind):
                    mine = (
                        f"{extra.field(field.name).type} in the logs"
                        if field.name in extra.names
                        else "of other types elsewhere"
                    )
                    raise OutputError(
                        errors.COLUMN_TOO_NARROW,
                        column=field.name,
                        type=field.type,
                        partition=hive_path(place),
                        output=output.uri,
                        other=mine,
                        wider=kind,
                    )
