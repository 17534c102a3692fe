"""Stage an export: what is new of it becomes files of logs below the output folder, and is not read again."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.progress.task import advance
from ragassay.jobs.storage import Folder, read_table, writing
from ragassay.jobs.traces import errors
from ragassay.jobs.traces.buckets import Buckets
from ragassay.jobs.traces.export import Damage, nothing_in, records, seal
from ragassay.jobs.traces.join import ROWS, Joined, as_unfinished, joined
from ragassay.jobs.traces.presets import ODD, PRESETS
from ragassay.jobs.traces.spans import SPANS, Span, from_table, to_table
from ragassay.jobs.traces.spill import Spill
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.schemas.traces import ExportFile, TracesRecord

TRACES = "_traces"
RECORD = f"{TRACES}/_record.json"
_DAY = 86_400_000_000  # microseconds
_AHEAD = _DAY  # of now: later times are of a wrong clock


@dataclass
class Staging:
    """What a staging works on.

    Attributes:
        output: The output folder.
        preset: The tool.
        hold: Microseconds of newer data after which a trace is taken as it is.
        keep_bad: Go on behind what can't be read.
        record: What was read before, and then what will have been.
        counts: What is counted.
        latest: A time that is later is none; microseconds since 1970.
    """

    output: Folder
    preset: str
    hold: float
    keep_bad: bool
    record: TracesRecord
    counts: Counter[str] = field(default_factory=Counter)
    latest: int = field(default_factory=lambda: time.time_ns() // 1000 + _AHEAD)

    def seen(self, span: Span) -> int:
        """When there was last something of a span, microseconds since 1970; 0 where no clock tells, or a wrong one."""
        found = span.last_seen or 0
        return found if found <= self.latest else 0

    def damaged(self, damage: Damage) -> None:
        """Count what can't be read, or stop at it."""
        if not self.keep_bad:
            raise InputError(errors.DAMAGED, damage=damage)
        self.counts["unreadable"] += 1


def stage(export: Logs, output: Folder, preset: str, hold_days: float, keep_bad: bool) -> dict[str, int]:
    """Write the traces of an export that are new as files of logs: `_traces/dt=…/part-N.parquet`.

    Everything is written before the record that names it: whatever breaks off before is done again, and what it left behind is
    deleted.

    Args:
        export: Its files.
        output: The output folder, locked.
        preset: The tool that wrote it.
        hold_days: A trace that more may come of is taken as it is when there is data so much newer.
        keep_bad: Go on behind files and lines that can't be read, and count them.

    Returns:
        What was counted; empty where nothing was new.

    Raises:
        InputError: Something can't be read, or holds no spans.
        OutputError: The folder holds traces of another tool.
    """
    record = read_record(output, preset)
    _sweep(output, record)
    work = Staging(output, preset, hold_days * _DAY, keep_bad, record)
    fresh = _fresh(work, export)
    if not fresh and record.waiting is None:
        return {}
    with (
        tempfile.TemporaryDirectory(prefix="ragassay-traces-") as of_spans,
        tempfile.TemporaryDirectory(prefix="ragassay-rows-") as of_rows,
    ):
        buckets = Buckets(Path(of_spans), sum(file.size for file, _ in fresh))
        _spill(work, export, fresh, buckets)
        _write(work, buckets, Spill(Path(of_rows)))
    if not fresh and not work.counts["traces"]:  # what waits waits on: nothing has changed
        _sweep(output, record)
        return {}
    work.record = replace(work.record, counts=dict(work.counts))
    output.write(RECORD, work.record.to_json())
    _sweep(output, work.record)
    return dict(work.counts)


def read_record(output: Folder, preset: str) -> TracesRecord:
    """What was read before; a new record where nothing was.

    Raises:
        OutputError: It can't be read, or is of another tool.
    """
    text = output.read(RECORD)
    if text is None:
        return TracesRecord(preset)
    try:
        record = TracesRecord.from_json(text)
    except ValueError as error:
        raise OutputError(errors.UNREADABLE_RECORD, output=output.uri, name=RECORD, reason=error) from error
    if record.preset != preset:
        raise OutputError(errors.OTHER_PRESET, output=output.uri, preset=record.preset, wanted=preset)
    return record


def _sweep(output: Folder, record: TracesRecord) -> None:
    """Delete what no record names: a staging that broke off wrote it, or it was waiting and is done."""
    named = {*record.staged, *([record.waiting] if record.waiting else [])}
    base = len(output.path(TRACES)) + 1
    for folder in (TRACES, f"{TRACES}/_waiting"):
        for info in output.list(folder, ""):
            if info.path.endswith((".parquet", ".part")) and info.path[base:] not in named:  # .part: it was killed
                output.fs.delete_file(info.path)


def _fresh(work: Staging, export: Logs) -> list[tuple[LogFile, ExportFile]]:
    """Files that were not read yet, or hold something else now."""
    found = []
    for file in export.files:
        known = work.record.files.get(file.path)
        if known is not None and (known.size, known.mtime) == (file.size, file.mtime) and file.mtime is not None:
            continue
        try:
            now = seal(export.fs, file)
        except (OSError, pa.ArrowException) as error:
            work.damaged(Damage(file.uri, "as a whole", str(error).splitlines()[0]))
            continue
        if known is None or known.digest != now.digest:
            work.counts["changed files" if known else "new files"] += 1
            found.append((file, now))
    return found


def _spill(work: Staging, export: Logs, fresh: list[tuple[LogFile, ExportFile]], buckets: Buckets) -> None:
    """Put the spans that wait and those of new files into buckets."""
    for span in _waiting(work):
        buckets.add(span)
    spans_of = PRESETS[work.preset]
    newest = work.record.newest if work.record.newest <= work.latest else 0
    names: list[str] = []
    for file, now in fresh:
        try:
            for number, record in enumerate(records(export.fs, file, work.damaged), 1):
                names = names or [str(name) for name in record]
                work.counts["records"] += 1
                try:
                    some = list(spans_of(record))
                except ODD as error:
                    reason = f"a field is not as {work.preset} writes it ({type(error).__name__})"  # its message may quote it
                    work.damaged(Damage(file.uri, f"record {number}", reason))
                    continue
                work.counts["other records"] += not some
                for span in some:
                    newest = max(newest, work.seen(span))
                    buckets.add(span)
        except (OSError, pa.ArrowException) as error:
            work.damaged(Damage(file.uri, "as a whole", str(error).splitlines()[0]))
            continue
        work.record.files[file.path] = now
        advance(1, "files")
    work.record.newest = newest
    nothing_yet = not work.record.staged and work.record.waiting is None
    if nothing_yet and work.counts["records"] and work.counts["other records"] == work.counts["records"]:
        raise nothing_in(export.uri, work.preset, work.counts["records"], names)


def _waiting(work: Staging) -> Iterator[Span]:
    if work.record.waiting is None:
        return
    with pq.ParquetFile(work.output.path(f"{TRACES}/{work.record.waiting}"), filesystem=work.output.fs) as parquet:
        for batch in parquet.iter_batches(BATCH):
            yield from from_table(pa.Table.from_batches([batch]))


BATCH = 4096


def _write(work: Staging, buckets: Buckets, rows: Spill) -> None:
    """Join bucket by bucket; then write a file a day, one after the other, and what is to wait into one of its own.

    An export may hold the traces of years: a file for each of its days at once would be more than a process may open.
    """
    part = work.record.part + 1
    known = _staged_ids(work)
    waiting = f"_waiting/{part}.parquet"
    staged: Counter[str] = Counter()
    open_traces = 0
    for traces in buckets.each():
        new = _without(traces, known)
        work.counts["late traces"] += len(traces) - len(new)
        taken, held = _parted(work, new)
        open_traces += len(held)
        if held:
            rows.append(waiting, to_table([span for trace in held for span in new[trace]]))
        for place, some in _by_day(taken, part).items():
            rows.append(place, pa.Table.from_pylist([one.row for one in some], schema=ROWS))
            staged[place] += len(some)
    for place in rows.names():
        _write_file(work.output, place, rows.batches(place), SPANS if place == waiting else ROWS)
    work.record = replace(
        work.record,
        staged={**work.record.staged, **staged},
        part=part,
        waiting=waiting if open_traces else None,
        open=open_traces,
    )
    work.counts["traces"], work.counts["open traces"] = staged.total(), open_traces


def _write_file(output: Folder, place: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    with (
        writing(output.fs, output.path(f"{TRACES}/{place}")) as stream,
        pq.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]), BATCH)


def _by_day(taken: list[Joined], part: int) -> dict[str, list[Joined]]:
    found: dict[str, list[Joined]] = {}
    for one in taken:
        found.setdefault(f"dt={one.day}/part-{part}.parquet", []).append(one)
    return found


def _parted(work: Staging, traces: dict[str, list[Span]]) -> tuple[list[Joined], list[str]]:
    """Traces that are taken, as rows, and those that wait."""
    taken, held = [], []
    for trace_id, spans in traces.items():
        found = joined(spans)
        if found.open and work.record.newest - max(map(work.seen, spans)) < work.hold:
            held.append(trace_id)
            continue
        found = as_unfinished(found) if found.open else found
        work.counts.update(found.notes)
        taken.append(found)
    return sorted(taken, key=lambda one: (one.row["start_time"] or 0, one.row["row_id"])), held


def _hashes(ids: list[str]) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    import polars as pl

    return pl.Series(ids, dtype=pl.String).hash().to_numpy()


def _staged_ids(work: Staging) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Hashes of the traces that are staged, sorted: eight bytes each."""
    found = [np.empty(0, np.uint64)]
    for place in work.record.staged:
        path = work.output.path(f"{TRACES}/{place}")
        ids = read_table(work.output.fs, path, ["trace_id"])["trace_id"]
        found.append(_hashes(ids.to_pylist()))
    return np.sort(np.concatenate(found))


def _without(traces: dict[str, list[Span]], known: "np.ndarray[Any, np.dtype[np.uint64]]") -> dict[str, list[Span]]:
    if not len(known) or not traces:
        return traces
    there = np.isin(_hashes(list(traces)), known)
    return {trace: spans for (trace, spans), staged in zip(traces.items(), there, strict=True) if not staged}
