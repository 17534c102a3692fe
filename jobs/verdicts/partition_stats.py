"""Read which values an output's verdicts are made of, and the statistics of its partitions."""

from collections.abc import Mapping

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.output.snapshot import check_row_count
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts import errors
from ragassay.jobs.verdicts.fit import read_stats
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats


def read_member_values(manifest: Manifest) -> dict[str, str]:
    """Return member -> the value that its moments describe, as in the latest fit.

    Raises:
        OutputError: No row has a score.
    """
    if manifest.last_fit:
        return {name: member.value for name, member in manifest.last_fit.members.items()}
    raise OutputError(errors.NO_SCORED_ROW)


def read_partition_stats(
    output: Folder,
    values: dict[str, str],
    names: frozenset[str] | None = None,
    known: Mapping[str, PartitionStats] | None = None,
) -> dict[str, PartitionStats]:
    """Read the statistics of every partition with verdicts.

    Args:
        output: The output folder, or a snapshot of it.
        values: Member -> kind of its value that the statistics must describe.
        names: Hive paths of the partitions to read; None reads all.
        known: Path of a partition on disk -> its current statistics, which are not read again.

    Raises:
        OutputError: Those of a partition are missing or out of date, or a run is replacing them.
    """
    stats_by_partition: dict[str, PartitionStats] = {}
    for partition in open_scored(output).partitions:
        if names is not None and hive_path(partition) not in names:
            continue
        stats = (known or {}).get(partition) or read_stats(output, partition)
        if stats is None or stats.values != values:
            raise OutputError(errors.STALE_STATISTICS, partition=hive_path(partition))
        check_row_count(output, partition, sum(stats.rows.values()))
        stats_by_partition[partition] = stats
    return stats_by_partition
