"""Plan 1, `score`: logs -> sentences -> one pool of actors a SLM -> detectors -> raw Parquet, resumable."""

from collections.abc import Callable, Mapping

from rich.console import Console

from ragassay.jobs.config import Job
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.plan import Sink, run_plan
from ragassay.jobs.score.checkpoint import CHECKPOINT, open_groups
from ragassay.jobs.score.datasource import open_rows
from ragassay.jobs.score.progress import progress
from ragassay.jobs.score.stages import stages
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
    """
    output.fs.create_dir(output.path("raw"), recursive=True)
    groups = open_groups(output, logs.fs, files)
    if any(groups.values()):
        sink = Sink(output, "raw", logs.partition_keys, raw_schema(logs.passthrough), CHECKPOINT)
        rows = sum(file.rows or 0 for file in files.values())
        with progress(stages(job, frequencies), rows, committed, console) as counted:
            run_plan(open_rows(job, logs, files, groups), counted, sink, job.block_mib)
