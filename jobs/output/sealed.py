"""Input files that are done with: from the manifest to Parquet files beside it, and found there again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, same_place
from ragassay.jobs.output import errors
from ragassay.jobs.storage.folder import Folder, read_table, writing
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.manifest import SCORED, InputFile, Manifest
from ragassay.schemas.sealed import SEALED_FILES_SCHEMA, SealedSummary

FILES = "_files"
SEAL_AT = 4096
"""Entries that the manifest may hold of files that are done with: 2 MB."""

SHARD_FILES = 1 << 16
"""Entries of a Parquet file at most: what of them is in memory at a time."""


def seal(output: Folder, manifest: Manifest, run_id: str) -> Manifest:
    """Move the entries of input files that are scored and judged out of the manifest, where they are many.

    Those of which a sample is scored stay there: more of them may be.

    Until the manifest is written nothing has changed: what a run that dies before leaves here is deleted by the next.

    Args:
        output: The output folder.
        manifest: Its manifest.
        run_id: Of the run; names the Parquet files.

    Returns:
        The manifest to be written afterwards.
    """
    done = {
        number: file for number, file in manifest.files.items() if file.state == SCORED and file.finalized and file.share == 1
    }
    if len(done) < SEAL_AT:
        return manifest
    _delete_unnamed(output, manifest)
    numbers, shards, sums = list(done), list(manifest.sealed.shards), Counter(manifest.sealed.rows)
    for part, start in enumerate(range(0, len(numbers), SHARD_FILES)):
        name = f"{run_id}-{part}.parquet"
        rows = [{"number": number, **vars(done[number])} for number in numbers[start : start + SHARD_FILES]]
        columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in SEALED_FILES_SCHEMA}
        with writing(output.fs, output.path(f"{FILES}/{name}")) as stream:
            pq.write_table(pa.table(columns, schema=SEALED_FILES_SCHEMA), stream, compression="zstd")
        shards.append(name)
    for file in done.values():
        sums[file.partition] += file.rows or 0
    kept = {number: file for number, file in manifest.files.items() if number not in done}
    return replace(manifest, files=kept, sealed=SealedSummary(shards, manifest.sealed.files + len(done), dict(sums)))


def sealed_among(output: Folder, manifest: Manifest, files: Sequence[LogFile]) -> dict[int, InputFile]:
    """Entries of sealed input files that are among some files, by number.

    By their paths; and where no entry at all has a file's path, by the place where it lies. One Parquet file of entries is in
    memory at a time.

    Args:
        output: The output folder.
        manifest: Its manifest.
        files: Input files.

    Raises:
        OutputError: A Parquet file of entries is missing.
    """
    if not manifest.sealed.files:
        return {}
    paths = pa.array([file.path for file in files], pa.string())
    found: dict[int, InputFile] = {}
    for shard in _shards(output, manifest):
        found |= _entries(shard.filter(pc.is_in(shard["path"], paths)))
    known = {entry.path for entry in (*manifest.files.values(), *found.values())}
    places = {same_place(file.uri) for file in files if file.path not in known}
    if places:
        for shard in _shards(output, manifest):
            mine = [same_place(uri) in places for uri in shard["uri"].to_pylist()]
            found |= _entries(shard.filter(pa.array(mine, pa.bool_())))
    return found


def _shards(output: Folder, manifest: Manifest) -> Iterator[pa.Table]:
    """The Parquet files, the newest first, without the entries that have another one since."""
    later = np.array(list(manifest.files), np.int64)
    for name in reversed(manifest.sealed.shards):
        path = output.path(f"{FILES}/{name}")
        try:
            table = read_table(output.fs, path, schema=SEALED_FILES_SCHEMA)
        except OSError as error:
            raise OutputError(errors.UNREADABLE_SHARD, path=f"{output.uri}/{FILES}/{name}", reason=error) from error
        numbers = table["number"].to_numpy()
        yield table.filter(pa.array(~np.isin(numbers, later)))
        if len(later) or len(manifest.sealed.shards) > 1:
            later = np.union1d(later, numbers)


def _entries(table: pa.Table) -> dict[int, InputFile]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return {row.pop("number"): InputFile(**row, state=SCORED, finalized=True) for row in rows}


def _delete_unnamed(output: Folder, manifest: Manifest) -> None:
    """Delete Parquet files of a run that died before it wrote the manifest."""
    for info in output.list(FILES, ".parquet"):
        if info.base_name not in manifest.sealed.shards:
            output.fs.delete_file(info.path)
