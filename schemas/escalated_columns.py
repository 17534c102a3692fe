"""The columns of `escalated/`: one row per response that was sent to the cascade's judge."""

from collections.abc import Iterable

import pyarrow as pa

from ragassay.schemas.columns import MEMBER, USAGE

ESCALATED = "escalated"
"""Folder of the dataset in the output folder."""

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
"""`row_key` and `row_id` as in `scored/`. `judge` is the judge's output; it and `usage` are null if the judge could not decide,
and then `status` and `error`, as in `raw/`, state why."""


def escalated_partition_key(key: str) -> str:
    """Return the name of a partition key in `escalated/`: `input_` is prefixed to a name of its own columns."""
    return f"input_{key}" if key in {field.name for field in ESCALATED_FIELDS} else key


def escalated_partition_path(path: str) -> str:
    """Return the hive path in `escalated/` of a partition of `scored/`."""
    parts = (part.partition("=") for part in path.split("/"))
    return "/".join(f"{escalated_partition_key(key)}={value}" if sign else key for key, sign, value in parts)


def escalated_schema(partition_keys: Iterable[str]) -> pa.Schema:
    """Return the schema for writing `escalated/`: its partition keys, which become folders, then its columns."""
    return pa.schema([*(pa.field(key, pa.string()) for key in partition_keys), *ESCALATED_FIELDS])
