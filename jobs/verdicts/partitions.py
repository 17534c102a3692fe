"""The complete partitions of an output folder, and those without verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats


@dataclass(frozen=True)
class CompletePartitions:
    """Complete partitions of an output folder. Keys are paths on disk.

    Attributes:
        raw: Partition -> its rows in `raw/`.
        stats: Partition -> its statistics.
        chosen: The partitions that get verdicts.
    """

    raw: Mapping[str, ScoredDataset]
    stats: Mapping[str, PartitionStats]
    chosen: Sequence[str]


def find_partitions_without_verdicts(raw: Iterable[str], manifest: Manifest) -> list[str]:
    """Find the partitions of `raw/` without verdicts: they are new, or a run ended before it finalized them."""
    return [path for path in raw if hive_path(path) not in manifest.finalized]
