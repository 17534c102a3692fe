"""Score files: logs -> sentences -> one pool of actors per SLM -> detectors -> raw Parquet."""

from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.progress.stages import show_stages
from ragassay.jobs.progress.task import task
from ragassay.jobs.runtime.board import open_board
from ragassay.jobs.runtime.dataflow import run_dataflow
from ragassay.jobs.runtime.sink import Sink
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, find_open_groups
from ragassay.jobs.scoring.frequencies import ensure_frequencies
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.scoring.source import make_source
from ragassay.jobs.scoring.stages import make_drop_stages, make_stages, select_passthrough
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.columns import raw_schema


def score_files(job: Job, selection: Selection, output: Folder, committed: int, console: Console) -> None:
    """Score files and write their rows to `raw/`: one row per response, partitioned as the input.

    Rows that an earlier, interrupted run has committed are not scored again.

    Args:
        job: The job.
        selection: The files and rows to score.
        output: The output folder.
        committed: Number of rows that an earlier run has committed.
        console: Where to show progress.
    """
    logs = selection.logs
    with task(console, "reading", "contexts"):  # words of the whole input: a budget must not change a detector's values
        frequencies = ensure_frequencies(job, logs, dict(enumerate(logs.files)), output) if job.members.detectors else None
    output.fs.create_dir(output.path("raw"), recursive=True)
    groups = find_open_groups(output, logs.fs, selection.non_empty_files, selection.samples)
    if any(groups.values()):
        sink = Sink(output, "raw", logs.partition_keys, raw_schema(select_passthrough(job.output, logs)), CHECKPOINT)
        run_stages = [*make_stages(job, frequencies), *make_drop_stages(job.output, logs)]
        with (
            open_board(len(run_stages)) as board,
            show_stages(run_stages, selection.rows, committed, board, console),
        ):
            run_dataflow(
                make_source(job, selection, groups), run_stages, sink, job.runtime.block_mib, board, selection.deadline
            )
