"""The columns of `escalated/`: a row a response that was put to the cascade's judge."""

from collections.abc import Iterable

import pyarrow as pa

from ragassay.schemas.columns import MEMBER, USAGE

ESCALATED = "escalated"
"""Folder of the dataset below the output folder."""

ESCALATED_FIELDS = [
    pa.field("row_key", pa.int64(), nullable=False),
    pa.field("row_id", pa.string(), nullable=False),
    pa.field("judge", MEMBER),
    pa.field("usage", USAGE),
    pa.field("context_windows", pa.int32()),
    pa.field("status", pa.string(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("run_id", pa.string(), nullable=False),
]
"""`row_key` and `row_id` as in `scored/`. `judge` is what it says, null where it could not decide: `status`, as in `raw/`, and
`error` say why then. `usage` is what it spent on the row, null where it could not decide."""


def escalated_key(key: str) -> str:
    """Name of a partition's key in `escalated/`: `input_` is put before one that is ours there."""
    return f"input_{key}" if key in {field.name for field in ESCALATED_FIELDS} else key


def escalated_place(place: str) -> str:
    """Hive path in `escalated/` of a partition of `scored/`."""
    parts = (part.partition("=") for part in place.split("/"))
    return "/".join(f"{escalated_key(key)}={value}" if sign else key for key, sign, value in parts)


def escalated_schema(partition_keys: Iterable[str]) -> pa.Schema:
    """Schema of `escalated/` as it is written: the keys of its partitions, which become folders, stand in front."""
    return pa.schema([*(pa.field(key, pa.string()) for key in partition_keys), *ESCALATED_FIELDS])
