"""Input files that are done with: their entries leave the manifest for Parquet files beside it, and their sums stay."""

from dataclasses import dataclass, field

import pyarrow as pa

from ragassay.schemas.versioned import RECORD

SEALED_FILES = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("uri", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("digest", pa.string()),
        pa.field("mtime", pa.int64()),
    ]
)
"""Columns of these files: `schemas.manifest.InputFile`s that are scored and judged, with their numbers."""


@dataclass(frozen=True)
class Sealed:
    """What the manifest still says of such input files.

    Attributes:
        shards: Names of the Parquet files in `_files/`, oldest first. An entry of the manifest stands for one of the same
            number in them.
        files: Input files of which there is no other entry.
        rows: Partition -> rows of these.
    """

    __pydantic_config__ = RECORD

    shards: list[str] = field(default_factory=list)
    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
