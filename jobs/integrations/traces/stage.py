"""Stage an export: what is new of it becomes files of logs below the output folder, and is not read again."""

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.integrations.traces import errors
from ragassay.jobs.integrations.traces.export import Damage, records, seal
from ragassay.jobs.integrations.traces.join import ROWS, as_unfinished, joined
from ragassay.jobs.integrations.traces.presets import ODD, PRESETS
from ragassay.jobs.integrations.traces.spans import SPANS, Span, from_batch, to_table
from ragassay.jobs.integrations.traces.spill import Spill
from ragassay.jobs.progress.task import advance
from ragassay.jobs.storage.folder import Folder, open_atomic, read_table
from ragassay.pipeline.errors import InputError, OutputError
from ragassay.schemas.traces import ExportFile, TracesRecord

TRACES = "_traces"
RECORD = f"{TRACES}/_record.json"
BATCH = 4096
BUFFERED = 8192
"""Spans that wait in memory before they are written."""

BUCKET_BYTES = 16 << 20
"""Bytes of export files for each bucket: a bucket's spans stand in memory together, and Parquet packs them tenfold."""

MOST_BUCKETS = 512
_DAY = 86_400_000_000  # microseconds
_AHEAD = _DAY  # of now: later times are of a wrong clock


@dataclass
class Staging:
    """What a staging works on.

    Attributes:
        output: The output folder.
        hold: Microseconds of newer data after which a trace is taken as it is.
        keep_bad: Go on behind what can't be read.
        record: What was read before, and then what will have been.
        counts: What is counted.
        latest: A time that is later is none; microseconds since 1970.
    """

    output: Folder
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
            raise InputError(errors.DAMAGED, uri=damage.uri, where=damage.where, reason=damage.reason)
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
    work = Staging(output, hold_days * _DAY, keep_bad, record)
    fresh = _fresh(work, export)
    if not fresh and record.pending_file is None:
        return {}
    buckets = min(MOST_BUCKETS, 1 + sum(file.size for file, _ in fresh) // BUCKET_BYTES)
    with (
        tempfile.TemporaryDirectory(prefix="ragassay-traces-") as of_spans,
        tempfile.TemporaryDirectory(prefix="ragassay-rows-") as of_rows,
    ):
        spans = Spill(Path(of_spans))
        _spill(_spans(work, export, fresh), spans, buckets)
        _write(work, spans, Spill(Path(of_rows)))
    if not fresh and not work.counts["traces"]:  # what waits waits on: nothing has changed
        _sweep(output, record)
        return {}
    work.record.counts = dict(work.counts)
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
    named = {output.path(f"{TRACES}/{place}") for place in (*record.staged, record.pending_file)}
    for folder in (TRACES, f"{TRACES}/_waiting"):
        for info in output.list(folder, ""):
            if info.path.endswith((".parquet", ".part")) and info.path not in named:  # .part: it was killed
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


def _spans(work: Staging, export: Logs, fresh: list[tuple[LogFile, ExportFile]]) -> Iterator[Span]:
    """The spans that wait, and those of new files."""
    record, counts = work.record, work.counts
    if record.pending_file is not None:
        with pq.ParquetFile(work.output.path(f"{TRACES}/{record.pending_file}"), filesystem=work.output.fs) as parquet:
            for batch in parquet.iter_batches(BATCH):
                yield from from_batch(batch)
    newest = record.newest if record.newest <= work.latest else 0
    names: list[str] = []
    for file, now in fresh:
        try:
            for number, item in enumerate(records(export.fs, file, work.damaged), 1):
                names = names or [repr(str(name)) for name in item]
                counts["records"] += 1
                try:
                    spans = list(PRESETS[record.preset](item))
                except ODD as error:
                    reason = f"a field is not as {record.preset} writes it ({type(error).__name__})"  # its message may quote it
                    work.damaged(Damage(file.uri, f"record {number}", reason))
                    continue
                counts["other records"] += not spans
                newest = max([newest, *map(work.seen, spans)])
                yield from spans
        except (OSError, pa.ArrowException) as error:
            work.damaged(Damage(file.uri, "as a whole", str(error).splitlines()[0]))
            continue
        record.files[file.path] = now
        advance(1, "files")
    record.newest = newest
    if not record.staged and record.pending_file is None and counts["records"] == counts["other records"] > 0:
        shown = f", with fields such as {', '.join(names[:8])}" if names else ""
        raise InputError(errors.NONE_KNOWN, uri=export.uri, records=counts["records"], preset=record.preset, names=shown)


def _spill(spans: Iterator[Span], into: Spill, buckets: int) -> None:
    """Put spans on this machine's disk, all of one trace into one bucket: an export of any size is joined in bounded memory."""
    while some := list(islice(spans, BUFFERED)):
        groups: dict[int, list[Span]] = defaultdict(list)
        for span in some:
            groups[crc32(span.trace_id.encode("utf-8", "surrogatepass")) % buckets].append(span)
        for number, group in groups.items():
            into.append(f"{number:03}", to_table(group))


def _write(work: Staging, spans: Spill, rows: Spill) -> None:
    """Join bucket by bucket; then write a file a day, one after the other, and what is to wait into one of its own.

    An export may hold the traces of years: a file for each of its days at once would be more than a process may open.
    """
    part = work.record.part + 1
    known = _staged_ids(work)
    waiting = f"_waiting/{part}.parquet"
    staged: Counter[str] = Counter()
    open_traces = 0
    for bucket in sorted(spans.names()):
        traces: dict[str, list[Span]] = defaultdict(list)
        for batch in spans.batches(bucket):
            for span in from_batch(batch):
                traces[span.trace_id].append(span)
        new = _without(traces, known)
        work.counts["late traces"] += len(traces) - len(new)
        days, held = _rows(work, new)
        open_traces += len(held)
        if held:
            rows.append(waiting, to_table([span for spans_of_one in held for span in spans_of_one]))
        for day, some in days.items():
            place = f"dt={day}/part-{part}.parquet"
            some.sort(key=lambda row: (row["start_time"] or 0, row["row_id"]))
            rows.append(place, pa.Table.from_pylist(some, schema=ROWS))
            staged[place] += len(some)
    for place in rows.names():
        _write_file(work.output, place, rows.batches(place), SPANS if place == waiting else ROWS)
    work.counts["traces"], work.counts["open traces"] = staged.total(), open_traces
    work.record = replace(
        work.record,
        staged={**work.record.staged, **staged},
        part=part,
        pending_file=waiting if open_traces else None,
        pending=open_traces,
    )


def _write_file(output: Folder, place: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    with (
        open_atomic(output.fs, output.path(f"{TRACES}/{place}")) as stream,
        pq.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]), BATCH)


def _rows(work: Staging, traces: dict[str, list[Span]]) -> tuple[dict[str, list[dict[str, Any]]], list[list[Span]]]:
    """Rows of the traces that are taken, by their days, and those traces that wait."""
    days: dict[str, list[dict[str, Any]]] = defaultdict(list)
    held = []
    for spans in traces.values():
        found = joined(spans)
        if found.open and work.record.newest - max(map(work.seen, spans)) < work.hold:
            held.append(spans)
            continue
        found = as_unfinished(found) if found.open else found
        work.counts.update(found.notes)
        days[found.day].append(found.row)
    return days, held


def _hashes(ids: Iterable[str]) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    import polars as pl

    return pl.Series(list(ids), dtype=pl.String).hash().to_numpy()


def _staged_ids(work: Staging) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Hashes of the traces that are staged, sorted: eight bytes each."""
    found = [np.empty(0, np.uint64)]
    for place in work.record.staged:
        path = work.output.path(f"{TRACES}/{place}")
        found.append(_hashes(read_table(work.output.fs, path, ["trace_id"])["trace_id"].to_pylist()))
    return np.sort(np.concatenate(found))


def _without(traces: dict[str, list[Span]], known: "np.ndarray[Any, np.dtype[np.uint64]]") -> dict[str, list[Span]]:
    """Traces that are not staged."""
    there = np.isin(_hashes(traces), known) if len(known) else [False] * len(traces)
    return {trace: spans for (trace, spans), staged in zip(traces.items(), there, strict=True) if not staged}
