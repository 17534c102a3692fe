"""The step `score`: score the selected rows of the input into `raw/`."""

import time
from dataclasses import dataclass

from rich.console import Console

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.input import LogFile
from ragassay.jobs.output.commits import delete_pending_markers
from ragassay.jobs.progress.task import task
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.scoring.balance import RawCounts, count_raw_rows
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, CommittedRowCounter, find_unfinished_files, read_committed_rows
from ragassay.jobs.scoring.row_set import list_files
from ragassay.jobs.scoring.score_files import score_files


@dataclass(frozen=True)
class ScoreResult:
    """Result of `score`.

    Attributes:
        whole_files: Number in the manifest -> file whose selected rows are all scored, including files without rows.
        counts: Counts of the rows of these files.
        resumed: Rows that an earlier, interrupted run had committed.
        deferred: Files deferred to later runs: by the plan, or because a budget ended within them.
        committed_rows: Path of a file in which a budget ended -> its rows that are scored.
        partly_scored_files: Numbers of all files that have rows in the checkpoint.
        seconds: Wall time.
    """

    whole_files: dict[int, LogFile]
    counts: RawCounts
    resumed: int
    deferred: tuple[LogFile, ...]
    committed_rows: dict[str, int]
    partly_scored_files: frozenset[int]
    seconds: float


def score(plan: RunPlan, console: Console) -> ScoreResult:
    """Score the selected rows into `raw/` and count them. Resumable: committed rows are not scored again.

    Args:
        plan: The plan, with a selection whose files are pending in the manifest.
        console: Where to show progress.

    Raises:
        RagassayError: See `pipeline.errors`. No committed row is lost.
    """
    started = time.perf_counter()
    selection, output = plan.selection, plan.output
    assert selection is not None
    files, resumed = selection.non_empty_files, 0
    if files:
        resumed = CommittedRowCounter(output, files)()
        console.print(
            f"{format_count(selection.rows, 'row')} to score" + (f", {resumed} of them already committed" if resumed else "")
        )
        score_files(plan.scoring_job, selection, output, resumed, console)
    cut = find_unfinished_files(output, files, selection.samples) if selection.can_end_early else set()
    whole_files = {number: file for number, file in selection.files.items() if number not in cut}
    with task(console, "counting", "rows", selection.rows, "rows"):
        counts = count_raw_rows(output, {number: file for number, file in whole_files.items() if file.rows}, selection.samples)
    delete_pending_markers(output, CHECKPOINT)
    committed = read_committed_rows(output)
    return ScoreResult(
        whole_files=whole_files,
        counts=counts,
        resumed=resumed,
        deferred=(*(files[number] for number in files if number in cut), *selection.deferred),
        committed_rows={files[n].path: committed.range_cardinality(n << 32, (n << 32) + (files[n].rows or 0)) for n in cut},
        partly_scored_files=frozenset(list_files(committed)),
        seconds=round(time.perf_counter() - started, 3),
    )
