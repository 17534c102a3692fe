"""Sealed input files: Parquet files next to the manifest store their entries, and the manifest keeps only their totals."""

from dataclasses import dataclass, field

import pyarrow as pa

from ragassay.schemas.versioned import RECORD_CONFIG

SEALED_FILES_SCHEMA = pa.schema(
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
"""Columns of these Parquet files: numbered `schemas.manifest.InputFile`s that are scored and finalized."""


@dataclass(frozen=True)
class SealedSummary:
    """Summary of the sealed input files.

    Attributes:
        shards: Names of the Parquet files in `_files/`, oldest first. An entry in the manifest replaces a shard's entry with
            the same number.
        files: Input files without an entry in the manifest.
        rows: Partition -> rows of these files.
    """

    __pydantic_config__ = RECORD_CONFIG

    shards: list[str] = field(default_factory=list)
    files: int = 0
    rows: dict[str, int] = field(default_factory=dict)
