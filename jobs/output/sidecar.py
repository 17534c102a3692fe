"""Rows beside `scored/` that a second pass over it writes, and resumes: `explanations/` and `escalated/`.

Ray commits the rows of a plan in a checkpoint while it writes them. A later run sees in the
rows themselves which are done, so a checkpoint serves one run; rows that are to be written anew are taken out first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from ragassay.jobs.output import errors
from ragassay.jobs.output.commits import clear_pending
from ragassay.jobs.output.fingerprint import differences, short
from ragassay.jobs.output.partitions import partitions
from ragassay.jobs.output.scored_dataset import batches
from ragassay.jobs.runtime.dataflow import Sink
from ragassay.jobs.storage.folder import Folder, writing
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.pipeline.errors import BalanceError, OutputError
from ragassay.schemas.escalated import ESCALATED
from ragassay.schemas.explanations import EXPLANATIONS, strategy_folder

ROWS = 1024
"""Rows in memory at a time."""


@dataclass(frozen=True)
class SidecarDataset:
    """A dataset beside `scored/`.

    Attributes:
        output: The output folder.
        name: The dataset's folder in it.
        checkpoint: The folder in it in which Ray commits rows while a plan runs.
        part: Folder below the dataset's that is meant, such as `strategy=vanilla`; empty means all of it.
    """

    output: Folder
    name: str
    checkpoint: str
    part: str = ""

    @property
    def folder(self) -> str:
        """Folder below the output folder."""
        return f"{self.name}/{self.part}".rstrip("/")

    def partitions(self) -> dict[str, list[str]]:
        """Hive path of each partition, as on disk -> its files."""
        return partitions(self.output, self.folder)

    def files(self) -> list[str]:
        """Its files, partition by partition."""
        return [path for paths in self.partitions().values() for path in paths]

    def batches(self, columns: Sequence[str] | None = None, files: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read rows in batches, file by file.

        Args:
            columns: Columns, or paths to parts of nested columns; None reads all.
            files: Of these files; None reads all.
        """
        return batches(self.output.fs, self.files() if files is None else files, columns, ROWS)

    def rows(self, columns: Sequence[str], files: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """Read rows as plain values; see `batches`."""
        for batch in self.batches(columns, files):
            yield from batch.to_pylist()

    def clear(self) -> None:
        """Delete what a killed run left: rows that it had not committed, and its checkpoint. All other rows stay."""
        clear_pending(self.output, self.checkpoint, self.name)
        self.drop_checkpoint()

    def drop_checkpoint(self) -> None:
        """Delete the checkpoint of a plan that has ended, and nothing else."""
        self.output.delete(self.checkpoint)

    def sink(self, partition_keys: Sequence[str], schema: pa.Schema) -> Sink:
        """Where a plan writes rows; its folder is made."""
        self.output.fs.create_dir(self.output.path(self.name), recursive=True)
        return Sink(self.output, self.name, partition_keys, schema, self.checkpoint)

    def keep_rows(self, path: str, stays: Bools) -> None:
        """Take rows out of a file.

        Args:
            path: The file; without any row left it is deleted.
            stays: Whether each of its rows stays.
        """
        if stays.all():
            return
        fs = self.output.fs
        if not stays.any():
            fs.delete_file(path)
            return
        table = pa.Table.from_batches(list(self.batches(files=[path]))).filter(pa.array(stays))
        with writing(fs, path) as stream:
            pq.write_table(table, stream, compression="zstd")

    def refuse_other_settings(self, then: Mapping[str, Any] | None, now: Mapping[str, Any], what: str, advice: str) -> None:
        """Refuse to add rows that were made under other settings.

        Args:
            then: Settings under which the rows were made that are there; None where the manifest knows none.
            now: Settings of the rows that are to come.
            what: What the rows are, in words.
            advice: What else can be done than to take the settings back.

        Raises:
            OutputError: There are rows, and the settings differ.
        """
        found = differences(dict(then), dict(now)) if then is not None and self.files() else []
        if found:
            lines = "\n".join(f"  {where.removeprefix('identity.')}: was {short(a)}, is {short(b)}" for where, a, b in found)
            settings = [where for where, _, _ in found]
            raise OutputError(
                errors.OTHER_SIDECAR, output=self.output.uri, what=what, settings=settings, lines=lines, advice=advice
            )

    def check_outcomes(self, wanted: Ints, outcomes: Ints) -> None:
        """Check that each row, or sentence, that was to be done has exactly one outcome.

        Args:
            wanted: `row_key` of each; or pairs of it and a sentence's number.
            outcomes: The same of each outcome of these rows.

        Raises:
            BalanceError: One has none, or several.
        """
        if not np.array_equal(_sorted(wanted), _sorted(outcomes)):
            raise BalanceError(
                errors.UNBALANCED,
                path=self.output.uri_of(self.folder),
                wanted=len(wanted),
                outcomes=len(outcomes),
                different=len(np.unique(outcomes, axis=0)),
            )


def explanations(output: Folder, strategy: str) -> SidecarDataset:
    """Why sentences are flagged, by one strategy of the reasoner."""
    return SidecarDataset(output, EXPLANATIONS, "_explaining", strategy_folder(strategy))


def escalations(output: Folder) -> SidecarDataset:
    """The answers of the cascade's judge."""
    return SidecarDataset(output, ESCALATED, "_escalating")


def _sorted(keys: Ints) -> Ints:
    pairs = keys if keys.ndim > 1 else keys[:, np.newaxis]
    return np.asarray(pairs[np.lexsort(pairs.T[::-1])], dtype=np.int64)
