"""Select the files and rows that a run scores, within its budget."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache

from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.output.partition_filter import Condition, matches
from ragassay.jobs.output.partitions import natural
from ragassay.jobs.scoring.checkpoint import committed_rows
from ragassay.jobs.scoring.row_sample import chosen_keys
from ragassay.jobs.scoring.row_set import RowSet, row_set, within
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.manifest import SCORED, InputFile, Left


class Order(StrEnum):
    """Which files come first."""

    PATH = "path"
    NEWEST = "newest"
    OLDEST = "oldest"


@dataclass(frozen=True)
class Backfill:
    """What of an input a run is to score.

    Attributes:
        conditions: What its partitions must fulfil; without any it is the whole input.
        order: Which files come first: by partition, or by path as ever.
        rows: Rows that a run scores at most; None for all.
        hours: Hours after its start in which a run begins no more rows; None for no end.
        share: Share of the rows, chosen by a hash of their ids; above 0, and 1 for all.
    """

    conditions: tuple[Condition, ...] = ()
    order: Order = Order.PATH
    rows: int | None = None
    hours: float | None = None
    share: float = 1.0

    def wants(self, file: LogFile) -> bool:
        """Whether a file lies in a partition that is meant."""
        return matches(self.conditions, dict(file.partition))

    def in_order(self, files: Iterable[LogFile]) -> list[LogFile]:
        """Files in the order in which they are taken."""
        if self.order is Order.PATH:
            return list(files)
        by_path = sorted(files, key=lambda file: file.path)
        return sorted(by_path, key=lambda file: natural(file.partition_path), reverse=self.order is Order.NEWEST)


WHOLE_INPUT = Backfill()


@dataclass(frozen=True)
class Taken:
    """The files that a run takes.

    Attributes:
        files: In order.
        stops: Path of a file that is larger than the budget -> first row, from 0, that is deferred.
        deferred: Files of the same partitions that are left for later runs, in order.
        shares: Path -> share of its rows that is to be scored.
        samples: Path -> numbers in the file of the rows that are to be scored, where that is not all.
    """

    files: list[LogFile]
    stops: dict[str, int] = field(default_factory=dict)
    deferred: list[LogFile] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    samples: dict[str, RowSet] = field(default_factory=dict)


def take_files(
    backfill: Backfill, logs: Logs, output: Folder, id_column: str | None, entries: Mapping[str, tuple[int, InputFile]]
) -> Taken:
    """Take the files that a run is to score.

    The share of a file of which rows are scored only rises: a larger one scores the rest, a smaller one leaves what there is.

    Args:
        backfill: What is wanted.
        logs: The input.
        output: The output folder.
        id_column: Column of the ids, if the logs have it.
        entries: Path of a file that the manifest knows -> its number and entry.
    """
    keys = committed_rows(output)
    files: list[LogFile] = []
    shares: dict[str, float] = {}
    by_path = {file.path: file for file in logs.files}

    @cache
    def rows_of(path: str, share: float) -> RowSet:
        return row_set(chosen_keys(logs.fs, by_path[path], 0, id_column, share))

    for file in filter(backfill.wants, logs.files):
        number, entry = entries.get(file.path, (0, None))
        if entry is not None and entry.state == SCORED and entry.share >= backfill.share:
            continue
        files.append(file)
        begun = entry is not None and (entry.state == SCORED or bool(_begun(keys, number, file)))
        shares[file.path] = max(entry.share, backfill.share) if entry is not None and begun else backfill.share

    def committed(file: LogFile) -> RowSet:
        number, entry = entries.get(file.path, (0, None))
        if entry is None:
            return RowSet()
        return rows_of(file.path, entry.share) if entry.state == SCORED else _begun(keys, number, file)

    def chosen(file: LogFile) -> RowSet | None:
        share = shares[file.path]
        return rows_of(file.path, share) if share < 1 else None

    taken = take(backfill, files, committed, chosen)
    samples = {file.path: rows for file in taken.files if (rows := chosen(file)) is not None}
    return replace(taken, shares=shares, samples=samples)


def take(
    backfill: Backfill,
    files: Sequence[LogFile],
    committed: Callable[[LogFile], RowSet],
    chosen: Callable[[LogFile], RowSet | None],
) -> Taken:
    """Take whole files in order until the rows of the budget are reached; of a first one that is larger, a part.

    Files without rows cost nothing, and come first, in order.

    Args:
        backfill: Order and budget.
        files: Files that are not scored yet.
        committed: Gives the numbers in a file of its rows that are scored already; asked only where there is a budget.
        chosen: Gives the numbers in a file of the rows that are to be scored; None for all.
    """
    ordered = backfill.in_order(files)
    if backfill.rows is None:
        return Taken(ordered)
    free = [file for file in ordered if not file.rows]  # none of them waits: that would be for nothing
    ordered = [file for file in ordered if file.rows]
    left = backfill.rows
    for place, file in enumerate(ordered):
        wanted = _open(file.rows or 0, committed(file), chosen(file))
        if len(wanted) > left:
            if place:
                return Taken([*free, *ordered[:place]], {}, ordered[place:])
            return Taken([*free, file], {file.path: wanted[left]}, ordered[1:])
        left -= len(wanted)
        if left <= 0:
            return Taken([*free, *ordered[: place + 1]], {}, ordered[place + 1 :])
    return Taken([*free, *ordered])


def _begun(keys: RowSet, number: int, file: LogFile) -> RowSet:
    """Numbers in a file of its rows that are committed."""
    first = number << 32
    return within(keys, first, first + (file.rows or 0)).shift(-first)


def _open(rows: int, done: RowSet, chosen: RowSet | None) -> RowSet:
    """Numbers, in a file of so many rows, of those that are to be scored and are not."""
    wanted = RowSet(range(rows))
    return (wanted if chosen is None else wanted & chosen) - done


def left_of(files: Sequence[LogFile], committed: Mapping[str, int], share: float, done_now: int) -> Left | None:
    """What is left of files that are not scored.

    Args:
        files: They.
        committed: Path -> rows of it that are scored already.
        share: Share of the rows that are to be scored.
        done_now: Rows that this run scored.
    """
    if not files:
        return None
    done = sum(committed.get(file.path, 0) for file in files)
    rows = max(0, round(share * sum(file.rows or 0 for file in files)) - done)
    places = {file.partition_path for file in files}
    return Left(rows, len(files), len(places), done, max(1, math.ceil(rows / done_now)) if done_now else None)
