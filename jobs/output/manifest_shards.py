"""Move the entries of finished input files from the manifest to Parquet files, and find them there again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.input import LogFile, canonical_uri
from ragassay.jobs.output import errors
from ragassay.jobs.storage.folder import Folder, open_atomic, read_table
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.manifest import SCORED, InputFile, Manifest
from ragassay.schemas.sealed_files import SEALED_FILES_SCHEMA, SealedSummary

SHARD_FOLDER = "_files"
SEAL_THRESHOLD = 4096
"""Number of finished files from which on their entries are moved out of the manifest; they take about 2 MB there."""

SHARD_ENTRIES = 1 << 16
"""Maximum number of entries per Parquet file. One Parquet file is in memory at a time."""


def seal_entries(output: Folder, manifest: Manifest, run_id: str) -> Manifest:
    """Move the entries of scored and finalized input files out of the manifest, if there are many.

    Entries of files with a scored sample stay, because more of their rows may be scored later.

    Nothing changes until the manifest is written. If the run dies before that, the next call deletes the Parquet files that it
    left.

    Args:
        output: The output folder.
        manifest: Its manifest.
        run_id: Id of the run; part of the names of the Parquet files.

    Returns:
        The manifest to write afterwards.
    """
    finished = {
        number: file for number, file in manifest.files.items() if file.state == SCORED and file.finalized and file.share == 1
    }
    if len(finished) < SEAL_THRESHOLD:
        return manifest
    _delete_orphan_shards(output, manifest)
    numbers, shards, row_counts = list(finished), list(manifest.sealed.shards), Counter(manifest.sealed.rows)
    for part, start in enumerate(range(0, len(numbers), SHARD_ENTRIES)):
        name = f"{run_id}-{part}.parquet"
        rows = [{"number": number, **vars(finished[number])} for number in numbers[start : start + SHARD_ENTRIES]]
        columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in SEALED_FILES_SCHEMA}
        with open_atomic(output.fs, output.path(f"{SHARD_FOLDER}/{name}")) as stream:
            pq.write_table(pa.table(columns, schema=SEALED_FILES_SCHEMA), stream, compression="zstd")
        shards.append(name)
    for file in finished.values():
        row_counts[file.partition] += file.rows or 0
    remaining = {number: file for number, file in manifest.files.items() if number not in finished}
    return replace(
        manifest, files=remaining, sealed=SealedSummary(shards, manifest.sealed.files + len(finished), dict(row_counts))
    )


def find_sealed_entries(output: Folder, manifest: Manifest, files: Sequence[LogFile]) -> dict[int, InputFile]:
    """Find the sealed entries of input files, by file number.

    Entries are matched by path. A file whose path has no entry is matched by its canonical URI. One Parquet file of entries is
    in memory at a time.

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
    entries: dict[int, InputFile] = {}
    for shard in _read_shards(output, manifest):
        entries |= _to_entries(shard.filter(pc.is_in(shard["path"], paths)))
    known_paths = {entry.path for entry in (*manifest.files.values(), *entries.values())}
    uris = {canonical_uri(file.uri) for file in files if file.path not in known_paths}
    if uris:
        for shard in _read_shards(output, manifest):
            is_match = [canonical_uri(uri) in uris for uri in shard["uri"].to_pylist()]
            entries |= _to_entries(shard.filter(pa.array(is_match, pa.bool_())))
    return entries


def _read_shards(output: Folder, manifest: Manifest) -> Iterator[pa.Table]:
    """Read the Parquet files, newest first, without entries that have a newer version."""
    newer_numbers = np.array(list(manifest.files), np.int64)
    for name in reversed(manifest.sealed.shards):
        path = output.path(f"{SHARD_FOLDER}/{name}")
        try:
            table = read_table(output.fs, path, schema=SEALED_FILES_SCHEMA)
        except OSError as error:
            raise OutputError(errors.UNREADABLE_SHARD, path=f"{output.uri}/{SHARD_FOLDER}/{name}", reason=error) from error
        numbers = table["number"].to_numpy()
        yield table.filter(pa.array(~np.isin(numbers, newer_numbers)))
        if len(newer_numbers) or len(manifest.sealed.shards) > 1:
            newer_numbers = np.union1d(newer_numbers, numbers)


def _to_entries(table: pa.Table) -> dict[int, InputFile]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return {row.pop("number"): InputFile(**row, state=SCORED, finalized=True) for row in rows}


def _delete_orphan_shards(output: Folder, manifest: Manifest) -> None:
    """Delete the Parquet files of a run that died before it wrote the manifest."""
    for info in output.list(SHARD_FOLDER, ".parquet"):
        if info.base_name not in manifest.sealed.shards:
            output.fs.delete_file(info.path)
