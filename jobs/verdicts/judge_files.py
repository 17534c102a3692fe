"""Read the decisions of a cascade's judge from `escalated/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.output.partitions import hive_path, list_partition_files
from ragassay.jobs.output.scored_dataset import read_file_batches
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.cascade.decide import JudgeDecisions, make_decisions
from ragassay.schemas.escalated_columns import ESCALATED, escalated_partition_path
from ragassay.schemas.manifest import Manifest

COLUMNS = ["row_key", "judge.sentence_scores.list.element"]


@dataclass(frozen=True)
class JudgeFiles:
    """Files with a judge's decisions on a partition; small enough to send to a task.

    Attributes:
        judge: Name of the judge.
        flags_below: The judge finds a sentence unsupported if its value is below this.
        files: Paths of the files in `escalated/`; empty without decisions.
    """

    judge: str
    flags_below: float
    files: tuple[str, ...]

    def read(self, fs: pafs.FileSystem) -> JudgeDecisions | None:
        """Read the decisions; None if there are none."""
        if not self.files:
            return None
        return make_decisions(pa.Table.from_batches(read_file_batches(fs, self.files, COLUMNS)), self.judge, self.flags_below)


NO_JUDGE_FILES = JudgeFiles("", 0.0, ())


def find_judge_files(output: Folder, manifest: Manifest, paths: Sequence[str]) -> dict[str, JudgeFiles]:
    """Find the files with a judge's decisions on partitions. The manifest, not the job file, names the judge.

    Args:
        output: The output folder.
        manifest: Manifest of the output folder.
        paths: Paths of partitions of `raw/` or `scored/` on disk.
    """
    record = manifest.judge
    files: Mapping[str, list[str]] = {}
    if record is not None:
        files = {hive_path(path): file_paths for path, file_paths in list_partition_files(output, ESCALATED).items()}
    if record is None or not files:
        return dict.fromkeys(paths, NO_JUDGE_FILES)
    return {
        path: JudgeFiles(record.name, record.flags_below, tuple(files.get(hive_path(escalated_partition_path(path)), ())))
        for path in paths
    }
