"""The step `score`: the selected rows of the input into `raw/`."""

import time
from dataclasses import dataclass

from rich.console import Console

from ragassay.jobs.input import LogFile
from ragassay.jobs.output.commits import forget_pending
from ragassay.jobs.progress.task import task
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.scoring.balance import Counted, count_scored
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, CommittedRows, committed_rows, unfinished_files
from ragassay.jobs.scoring.plan import score_files
from ragassay.jobs.scoring.row_set import files_of


@dataclass(frozen=True)
class Scored:
    """What a run has scored.

    Attributes:
        whole: Number in the manifest -> file of which all selected rows are scored now; those without rows among them.
        counted: The rows of these.
        resumed: Rows that an earlier, broken run had committed.
        deferred: Files that wait for later runs: the plan's, and those over which a budget ended.
        committed: Path -> rows of such a file that are scored already.
        begun: Numbers of all files of which the checkpoint holds rows.
        seconds: Wall time.
    """

    whole: dict[int, LogFile]
    counted: Counted
    resumed: int
    deferred: tuple[LogFile, ...]
    committed: dict[str, int]
    begun: frozenset[int]
    seconds: float


def score(plan: RunPlan, console: Console) -> Scored:
    """Score the selected rows into `raw/` and count what stands there. Resumable: committed rows are not scored again.

    Args:
        plan: The plan, with a selection that the manifest holds as pending.
        console: Where progress goes.

    Raises:
        RagassayError: See `pipeline.errors`; nothing that is committed is lost.
    """
    started = time.perf_counter()
    selection, output = plan.selection, plan.output
    assert selection is not None
    files, resumed = selection.with_rows, 0
    if files:
        resumed = CommittedRows(output, files)()
        console.print(f"{selection.rows} rows to score" + (f", {resumed} of them already committed" if resumed else ""))
        score_files(plan.scoring_job, selection, output, resumed, console)
    cut = unfinished_files(output, files, selection.samples) if selection.may_end_early else set()
    whole = {number: file for number, file in selection.files.items() if number not in cut}
    with task(console, "counting", "rows", selection.rows, "rows"):
        counted = count_scored(output, {number: file for number, file in whole.items() if file.rows}, selection.samples)
    forget_pending(output, CHECKPOINT)
    keys = committed_rows(output)
    return Scored(
        whole=whole,
        counted=counted,
        resumed=resumed,
        deferred=(*(files[number] for number in files if number in cut), *selection.deferred),
        committed={files[n].path: keys.range_cardinality(n << 32, (n << 32) + (files[n].rows or 0)) for n in cut},
        begun=frozenset(files_of(keys)),
        seconds=round(time.perf_counter() - started, 3),
    )
