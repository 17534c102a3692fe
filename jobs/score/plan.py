"""Plan 1, `score`: logs -> sentences -> one pool of actors a SLM -> detectors -> raw Parquet, resumable."""

from collections.abc import Callable, Mapping

from rich.console import Console

from ragassay.jobs.config import Job
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.plan import Sink, run_plan
from ragassay.jobs.score.checkpoint import CHECKPOINT, open_groups
from ragassay.jobs.score.datasource import EVERYTHING, Limits, open_rows
from ragassay.jobs.score.progress import progress
from ragassay.jobs.score.row_set import RowSet
from ragassay.jobs.score.stages import carried_columns, drop_stages, stages
from ragassay.jobs.storage import Folder
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.schemas.columns import raw_schema


def score_files(
    job: Job,
    logs: Logs,
    files: Mapping[int, LogFile],
    output: Folder,
    frequencies: Callable[[], Frequencies] | None,
    committed: int,
    console: Console,
    chosen: Mapping[int, RowSet] | None = None,
    limits: Limits = EVERYTHING,
) -> None:
    """Score files and write their rows to `raw/`, one row a response, partitioned as the input.

    Rows that an earlier, broken run has committed are not scored again.

    Args:
        job: The job.
        logs: The input.
        files: Number in the manifest -> file to score.
        output: The output folder.
        frequencies: Gives the document frequencies, if there are detectors.
        committed: How many rows an earlier run has committed.
        console: Where progress goes.
        chosen: Number -> its chosen rows, of files of which a sample is scored.
        limits: What is left out.
    """
    output.fs.create_dir(output.path("raw"), recursive=True)
    groups = open_groups(output, logs.fs, files, chosen)
    if any(groups.values()):
        sink = Sink(output, "raw", logs.partition_keys, raw_schema(carried_columns(job, logs)), CHECKPOINT)
        rows = sum(len(chosen[number]) if chosen and number in chosen else file.rows or 0 for number, file in files.items())
        steps = [*stages(job, frequencies), *drop_stages(job, logs)]
        source = open_rows(job, logs, files, groups, limits)
        with progress(steps, rows, committed, console) as counts:
            run_plan(source, steps, sink, job.block_mib, counts, limits.deadline)
