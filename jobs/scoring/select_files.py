"""Select the files and rows that a run scores, within its budget."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.output.partition_filter import Condition, matches
from ragassay.jobs.output.partitions import natural_key
from ragassay.jobs.scoring.checkpoint import read_committed_rows
from ragassay.jobs.scoring.order import ScoringOrder
from ragassay.jobs.scoring.row_sample import find_sample_keys
from ragassay.jobs.scoring.row_set import RowSet, make_row_set, slice_rows
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.manifest import SCORED, DeferredInput, InputFile


@dataclass(frozen=True)
class ScoringScope:
    """The part of an input that a run scores.

    Attributes:
        conditions: Conditions on the partitions; without any, the whole input.
        order: Order of the files: by path, or by partition.
        max_rows: Maximum number of rows to score; None for all.
        max_hours: Hours after the start of the run at which it starts no more rows; None for no end.
        share: Share of the rows to score, > 0, chosen by a hash of their ids; 1 for all rows.
    """

    conditions: tuple[Condition, ...] = ()
    order: ScoringOrder = ScoringOrder.PATH
    max_rows: int | None = None
    max_hours: float | None = None
    share: float = 1.0

    def includes(self, file: LogFile) -> bool:
        """Return whether the file's partition meets the conditions."""
        return matches(self.conditions, dict(file.partition))

    def sort_files(self, files: Iterable[LogFile]) -> list[LogFile]:
        """Sort files into the order in which they are scored."""
        if self.order is ScoringOrder.PATH:
            return list(files)
        by_path = sorted(files, key=lambda file: file.path)
        return sorted(by_path, key=lambda file: natural_key(file.partition_path), reverse=self.order is ScoringOrder.NEWEST)


WHOLE_INPUT = ScoringScope()


@dataclass(frozen=True)
class FileSelection:
    """Files selected for one run.

    Attributes:
        files: Files to score, in order.
        cut_at: Path of a file that exceeds the budget -> first row (from 0) that is deferred to a later run.
        deferred: Files of the same partitions that are deferred to later runs, in order.
        shares: Path -> share of the file's rows to score.
        samples: Path -> numbers (in the file) of the rows to score, if these are not all rows.
    """

    files: list[LogFile]
    cut_at: dict[str, int] = field(default_factory=dict)
    deferred: list[LogFile] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    samples: dict[str, RowSet] = field(default_factory=dict)


def select_files(
    scope: ScoringScope, logs: Logs, output: Folder, id_column: str | None, entries: Mapping[str, tuple[int, InputFile]]
) -> FileSelection:
    """Select the files that a run scores.

    The share of a file only grows: a larger share scores the missing rows, a smaller one removes nothing.

    Args:
        scope: The part of the input to score.
        logs: The input.
        output: The output folder.
        id_column: Column of the row ids; None if the logs have none.
        entries: Path of a file that the manifest contains -> its number and entry.
    """
    committed_keys = read_committed_rows(output)
    files: list[LogFile] = []
    shares: dict[str, float] = {}
    by_path = {file.path: file for file in logs.files}

    @cache
    def find_sample(path: str, share: float) -> RowSet:
        return make_row_set(find_sample_keys(logs.fs, by_path[path], 0, id_column, share))

    for file in filter(scope.includes, logs.files):
        number, entry = entries.get(file.path, (0, None))
        if entry is not None and entry.state == SCORED and entry.share >= scope.share:
            continue
        files.append(file)
        is_begun = entry is not None and (entry.state == SCORED or bool(_rows_of_file(committed_keys, number, file)))
        shares[file.path] = max(entry.share, scope.share) if entry is not None and is_begun else scope.share

    def find_scored_rows(file: LogFile) -> RowSet:
        number, entry = entries.get(file.path, (0, None))
        if entry is None:
            return RowSet()
        if entry.state == SCORED:
            return find_sample(file.path, entry.share)
        return _rows_of_file(committed_keys, number, file)

    def find_chosen_rows(file: LogFile) -> RowSet | None:
        share = shares[file.path]
        return find_sample(file.path, share) if share < 1 else None

    selection = apply_budget(scope, files, find_scored_rows, find_chosen_rows)
    samples = {file.path: rows for file in selection.files if (rows := find_chosen_rows(file)) is not None}
    return replace(selection, shares=shares, samples=samples)


def apply_budget(
    scope: ScoringScope,
    files: Sequence[LogFile],
    find_scored_rows: Callable[[LogFile], RowSet],
    find_chosen_rows: Callable[[LogFile], RowSet | None],
) -> FileSelection:
    """Select whole files in order until the row budget is used up. A first file that exceeds the budget is cut.

    Files without rows cost nothing; they come first, in order.

    Args:
        scope: Order and budget.
        files: Files that are not completely scored.
        find_scored_rows: Returns the numbers (in the file) of the rows that are scored; called only if there is a budget.
        find_chosen_rows: Returns the numbers (in the file) of the rows to score; None for all rows.
    """
    ordered = scope.sort_files(files)
    if scope.max_rows is None:
        return FileSelection(ordered)
    empty_files = [file for file in ordered if not file.rows]
    ordered = [file for file in ordered if file.rows]
    budget = scope.max_rows
    for index, file in enumerate(ordered):
        open_rows = _open_rows(file.rows or 0, find_scored_rows(file), find_chosen_rows(file))
        if len(open_rows) > budget:
            if index:
                return FileSelection([*empty_files, *ordered[:index]], {}, ordered[index:])
            return FileSelection([*empty_files, file], {file.path: open_rows[budget]}, ordered[1:])
        budget -= len(open_rows)
        if budget <= 0:
            return FileSelection([*empty_files, *ordered[: index + 1]], {}, ordered[index + 1 :])
    return FileSelection([*empty_files, *ordered])


def _rows_of_file(keys: RowSet, number: int, file: LogFile) -> RowSet:
    """Return the numbers (in the file) of the file's rows whose keys are in the set."""
    first = number << 32
    return slice_rows(keys, first, first + (file.rows or 0)).shift(-first)


def _open_rows(rows: int, scored: RowSet, chosen: RowSet | None) -> RowSet:
    """Return the numbers of the rows to score that are not scored, in a file of `rows` rows."""
    to_score = RowSet(range(rows))
    return (to_score if chosen is None else to_score & chosen) - scored


def count_deferred(
    files: Sequence[LogFile], committed: Mapping[str, int], share: float, scored_rows: int
) -> DeferredInput | None:
    """Count what a run defers to later runs.

    Args:
        files: The deferred files.
        committed: Path -> rows of the file that are scored.
        share: Share of the rows to score.
        scored_rows: Rows that this run scored.

    Returns:
        The counts; None if no file is deferred.
    """
    if not files:
        return None
    done = sum(committed.get(file.path, 0) for file in files)
    rows = max(0, round(share * sum(file.rows or 0 for file in files)) - done)
    partitions = {file.partition_path for file in files}
    more_runs = max(1, math.ceil(rows / scored_rows)) if scored_rows else None
    return DeferredInput(rows, len(files), len(partitions), done, more_runs)
