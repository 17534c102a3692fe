"""Write the verdicts of partitions without losing a row, and count the rows."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.runtime.tasks import make_task
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts import errors as codes
from ragassay.jobs.verdicts.error_share import find_worst_error_share
from ragassay.jobs.verdicts.finalize_partition import FinalizedCounts, finalize_partition
from ragassay.jobs.verdicts.judge_files import find_judge_files
from ragassay.jobs.verdicts.partitions import CompletePartitions
from ragassay.pipeline.errors import BalanceError
from ragassay.pipeline.finalize import VerdictSettings
from ragassay.schemas.manifest import InputFile, Manifest


@dataclass(frozen=True)
class RowCounts:
    """Counts of rows in `scored/` that a run reports.

    Attributes:
        statuses: Rows by status.
        sentences: Sentences of the rows with a score.
        flagged: Rows with the verdict hallucinated.
        errors: Rows with the status `error` and all rows (`schemas.manifest.Run.errors`); None if no row was written.
        files: Numbers of the input files whose rows were written.
    """

    statuses: Counter[str]
    sentences: int
    flagged: int
    errors: dict[str, int] | None
    files: set[int]


def write_verdicts(
    output: Folder, manifest: Manifest, scores: CompletePartitions, settings: VerdictSettings
) -> dict[str, FinalizedCounts]:
    """Write partitions of `scored/`, each whole or not at all.

    Args:
        output: The output folder.
        manifest: Manifest of the output folder: its input files, and the judge whose decisions are kept.
        scores: The partitions that get verdicts.
        settings: Settings of the verdicts.

    Returns:
        Path of a partition on disk -> counts of its rows.

    Raises:
        BalanceError: Rows would be lost.
    """
    start = make_task(finalize_partition, MODEL_FREE_TASK_CPUS)
    targets = {path: output.path("/".join(filter(None, ["scored", path, "part-0.parquet"]))) for path in scores.chosen}
    judge_files = find_judge_files(output, manifest, scores.chosen)
    tasks = {path: start(scores.raw[path], targets[path], settings, judge_files[path]) for path in scores.chosen}
    scored_rows = manifest.count_scored_rows()
    results: dict[str, FinalizedCounts] = {}
    expect(len(tasks), "partitions")
    for path, task in tasks.items():
        result = results[path] = task.result()
        advance(1, "partitions")
        rows_in = scored_rows[hive_path(path)]
        if not result.rows == rows_in == sum(scores.stats[path].rows.values()):
            raise BalanceError(codes.PARTITION_UNBALANCED, partition=path, rows_in=rows_in, rows_out=result.rows)
    return results


def count_written_rows(
    files: Mapping[int, InputFile], partitions: Iterable[FinalizedCounts], scored: Collection[int] | None
) -> RowCounts:
    """Count the rows of `scored/` that a run reports. A row can have a score in `raw/` and none in `scored/`.

    The error share is computed for two groups, and the larger one counts: all written rows, and the rows without an earlier
    verdict (scored by an earlier `score` command or by a run that ended early). So a large partition does not hide the errors
    of new rows.

    Args:
        files: Input files of the manifest, by number. Sealed files, which are missing, have verdicts.
        partitions: Counts of the written partitions.
        scored: Numbers of the input files that this run has scored, whose rows it reports; None for all.
    """
    statuses, new_rows, written_rows = Counter[str](), Counter[str](), Counter[str]()
    sentences = flagged = 0
    numbers: set[int] = set()
    for partition in partitions:
        for number, counts in partition.statuses.items():
            written_rows.update(counts)
            had_verdicts = number not in files or files[number].finalized
            new_rows.update({} if had_verdicts or number in numbers else counts)
            numbers.add(number)
            if scored is None or number in scored:
                statuses.update(counts)
                sentences += partition.sentences[number]
                flagged += partition.flagged[number]
    return RowCounts(
        statuses, sentences, flagged, find_worst_error_share(new_rows, written_rows) if written_rows else None, numbers
    )
