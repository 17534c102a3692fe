"""`publish`: which partitions have anything new to say, and how far each is sent."""

from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Http
from ragassay.jobs.integrations.publish.state import State
from ragassay.jobs.integrations.publish.target import Fate, Outcome, Sending, Target
from ragassay.jobs.integrations.publish.verdict import Chunk, Wanted, chunks
from ragassay.jobs.output.partitions import hive_path, natural_key
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.jobs.output.snapshot import check_partition
from ragassay.jobs.progress.task import expect
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import PublishError
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.published import PublishedPartition, RefusedRows

AT_ONCE = 4
"""Requests under way; their answers are taken in order, so that what was sent is always the first rows of a partition."""

MOST_REFUSED = 1000
"""Where a tool refuses so many, something is wrong with all of them."""

TRACE_ID = "trace_id"
ROW_ID = "row_id"


@dataclass
class Done:
    """What a run of `publish` did.

    Attributes:
        sent: Partition -> rows that the tool has taken in this run.
        left_out: Rows that were not sent, by reason.
        unknown: Rows whose trace the tool does not know.
        refused: Of the chosen partitions, what the tool would not take, in this run or before.
        current: Partitions of which the tool has all.
        without_verdicts: Partitions that no ended run has given verdicts.
        requests: How many were sent.
    """

    sent: dict[str, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    refused: list[RefusedRows] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    without_verdicts: list[str] = field(default_factory=list)
    requests: int = 0


@dataclass(frozen=True)
class Job:
    """What is to be sent, and where to.

    Attributes:
        output: The output folder.
        manifest: Its manifest.
        scored: The chosen partitions of `scored/`.
        target: The tool.
        wanted: What of which rows.
        name: Name of the score.
        again: Send everything anew.
    """

    output: Folder
    manifest: Manifest
    scored: ScoredDataset
    target: Target
    wanted: Wanted
    name: str
    again: bool = False

    @property
    def places(self) -> list[str]:
        """The chosen partitions, in the order in which they are sent."""
        return sorted(self.scored.partitions, key=natural_key)


def columns_to_take(job: Job, trace: str | None, span: str | None) -> Wanted:
    """What is wanted, with the columns of ids: as named, else by what is there.

    Args:
        job: Its `wanted` is filled in.
        trace: Column of the trace's id; None takes `trace_id` where it is there, else `row_id`.
        span: Column of the span's id; None takes what the tool has most use for; empty takes none.

    Raises:
        InputError: A named column is not there.
    """
    last = job.scored.partitions[job.places[-1]]  # earlier ones may have fewer columns
    for named, option in ((trace, "integrations.publish.trace_column"), (span, "integrations.publish.span_column")):
        last.require_columns([named] if named else [], option)
    of_span = next((name for name in job.target.span_columns if name in last.columns), None) if span is None else span or None
    return replace(job.wanted, trace_column=trace or (TRACE_ID if TRACE_ID in last.columns else ROW_ID), span_column=of_span)


def rehearse(job: Job, state: State) -> tuple[Done, Any]:
    """What `publish` would send, without asking anybody.

    Returns:
        The counts; and what the first verdict would look like, None where there is none.
    """
    done, example = Done(), None
    for place in job.places:
        part = _part(job, state, place)
        if part is None or (part.done and not _named(part)):
            (done.without_verdicts if part is None else done.current).append(hive_path(place))
            continue
        for chunk in _to_send(job, place, part):
            done.sent[hive_path(place)] = done.sent.get(hive_path(place), 0) + len(chunk.verdicts)
            done.left_out += Counter() if part.done else chunk.left_out
            if example is None and chunk.verdicts:
                example = job.target.example(chunk.verdicts[0], _sending(job, part))
    return done, example


def publish(job: Job, http: Http, state: State) -> Done:
    """Send verdicts to a tool, partition by partition; what it has already is not sent again.

    Args:
        job: What.
        http: Where to.
        state: What has been sent; written as it goes.

    Raises:
        PublishError: The tool can't be reached, refuses the key, or refuses too much.
        OutputRewritten: A run has replaced a partition meanwhile; its new verdicts are sent when this is done again.
    """
    done, todo = Done(), []
    for place in job.places:
        part = _part(job, state, place)
        if part is None:
            done.without_verdicts.append(hive_path(place))
        elif part.done and not _named(part):
            done.current.append(hive_path(place))
        else:
            todo.append((place, part))
    expect(job.scored.select_partitions(hive_path(place) for place, _ in todo).count_rows(), "rows")
    try:
        for place, part in todo:
            _send_partition(job, http, state, place, part, done)
    finally:
        http.stop()
        if todo:
            state.write(now=True)
        http.close()
    done.requests = http.requests
    there = state.published.partitions
    done.refused = [one for place in map(hive_path, job.places) if place in there for one in there[place].refused]
    return done


def _part(job: Job, state: State, place: str) -> PublishedPartition | None:
    """How far a partition is, begun anew where its verdicts are others; None where it has none that count."""
    partition = hive_path(place)
    final = job.manifest.finalized.get(partition)
    if final is None:
        return None
    verdicts = "+".join(filter(None, [final.run_id, job.manifest.escalated.get(partition)]))
    before = state.published.partitions.get(partition)
    what = job.wanted.in_words()
    if before and before.verdicts == verdicts and before.selection == what and not job.again:
        return before
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    part = PublishedPartition(verdicts, what, moment)
    if before:
        part.since, part.resends = before.since, before.resends + 1
    state.published.partitions[partition] = part
    return part


def _named(part: PublishedPartition) -> set[str]:
    """Rows that were refused by name: they are tried again."""
    return {one.row_id for one in part.refused if one.row_id is not None}


def _to_send(job: Job, place: str, part: PublishedPartition) -> Iterator[Chunk]:
    """What of a partition is to be sent: the rows behind those that were, or of one that is done those that were refused."""
    scored, wanted = job.scored.partitions[place], job.wanted
    if part.resends and wanted.only_flagged:  # one that was flagged may no longer be
        wanted = replace(wanted, only_flagged=False)
    among = _named(part) if part.done else None
    repeated = scored.find_repeated_ids(reports_progress=False)[place].to_pylist()
    rows = (row for _, row in scored.read_rows(wanted.columns))
    return chunks(rows, wanted, job.target.batch, start=0 if part.done else part.rows, repeated=set(repeated), among=among)


def _send_partition(job: Job, http: Http, state: State, place: str, part: PublishedPartition, done: Done) -> None:
    sending = _sending(job, part)
    check_partition(job.output, place)
    with closing(_answered(job.target, http, _to_send(job, place, part), sending)) as answered:
        for chunk, outcomes in answered:
            _count(part, done, hive_path(place), chunk, outcomes, retried=part.done)
            state.write(now=not job.target.overwrites)
            if sum(one.rows for one in part.refused) > MOST_REFUSED:
                raise PublishError(
                    errors.TOO_MANY_REFUSED, url=http.connection.url, most=MOST_REFUSED, reason=part.refused[-1].reason
                )
    check_partition(job.output, place)
    part.done = True


def _sending(job: Job, part: PublishedPartition) -> Sending:
    run_id = part.verdicts.rpartition("+")[2]
    given = next((run.finished or run.started for run in job.manifest.runs if run.run_id == run_id), part.since)
    moment = datetime.fromisoformat(part.since) + timedelta(milliseconds=part.resends)
    return Sending(job.name, datetime.fromisoformat(given), moment)


def _answered(target: Target, http: Http, found: Iterator[Chunk], sending: Sending) -> Generator[tuple[Chunk, list[Outcome]]]:
    """Chunks with what became of their verdicts, in order; some are under way at once."""
    under_way: deque[tuple[Chunk, Future[list[Outcome]]]] = deque()
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for chunk in chain(found, [None]):
            if chunk is not None:
                under_way.append((chunk, pool.submit(_send, target, http, chunk, sending)))
            while under_way and (chunk is None or len(under_way) > AT_ONCE):
                first, future = under_way.popleft()
                yield first, future.result()
    except BaseException:
        http.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _send(target: Target, http: Http, chunk: Chunk, sending: Sending) -> list[Outcome]:
    outcomes = target.send(http, chunk.verdicts, sending) if chunk.verdicts else []
    assert len(outcomes) == len(chunk.verdicts), "a target says what became of each verdict"
    return outcomes


def _count(
    part: PublishedPartition, done: Done, partition: str, chunk: Chunk, outcomes: Sequence[Outcome], *, retried: bool
) -> None:
    fates = Counter(outcome.fate for outcome in outcomes)
    part.sent += fates[Fate.SENT]
    part.unknown += fates[Fate.UNKNOWN]
    done.sent[partition] = done.sent.get(partition, 0) + fates[Fate.SENT]
    done.unknown += fates[Fate.UNKNOWN]
    ids = {verdict.row_id for verdict in chunk.verdicts}
    part.refused = [one for one in part.refused if one.row_id not in ids]  # what was said of them before
    unnamed = Counter(o.reason for o in outcomes if o.fate is Fate.REFUSED and not o.named)
    part.refused += [RefusedRows(reason, None, rows) for reason, rows in unnamed.items()]
    part.refused += [
        RefusedRows(outcome.reason, verdict.row_id)
        for verdict, outcome in zip(chunk.verdicts, outcomes, strict=True)
        if outcome.fate is Fate.REFUSED and outcome.named
    ]
    if not retried:
        part.rows = chunk.end
        done.left_out += chunk.left_out
        part.skipped = dict(Counter(part.skipped) + chunk.left_out)
