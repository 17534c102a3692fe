"""The decisions of the cascade's judge, as `escalated/` holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.output.partitions import hive_path, partitions
from ragassay.jobs.output.scored_dataset import batches
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.cascade.decide import Decisions, decisions_of
from ragassay.schemas.escalated import ESCALATED, escalated_place
from ragassay.schemas.manifest import Manifest

COLUMNS = ["row_key", "judge.sentence_scores.list.element"]


@dataclass(frozen=True)
class Judged:
    """Where a judge's decisions on a partition stand, as a task is told.

    Attributes:
        judge: Its name.
        below: It finds a sentence unsupported whose value lies below.
        files: Files of `escalated/`; of no judge, none.
    """

    judge: str
    below: float
    files: tuple[str, ...]

    def read(self, fs: pafs.FileSystem) -> Decisions | None:
        """The decisions; None where there are none."""
        if not self.files:
            return None
        return decisions_of(pa.Table.from_batches(batches(fs, self.files, COLUMNS)), self.judge, self.below)


NOBODY = Judged("", 0.0, ())


def judged_partitions(output: Folder, manifest: Manifest, places: Sequence[str]) -> dict[str, Judged]:
    """What a judge has decided in partitions of `raw/` or `scored/`: by what the manifest says of it, whatever the job file."""
    record = manifest.judge
    files: Mapping[str, list[str]] = {}
    if record is not None:
        files = {hive_path(place): paths for place, paths in partitions(output, ESCALATED).items()}
    if record is None or not files:
        return dict.fromkeys(places, NOBODY)
    return {
        place: Judged(record.name, record.below, tuple(files.get(hive_path(escalated_place(place)), ()))) for place in places
    }
