"""Helpers of all exports: values in a tool's form, and files."""

import gzip
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.jobs.integrations.traces.stories import Doc

Rows = list[dict[str, Any]]


def to_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def to_nanoseconds(seconds: float | None) -> str | None:
    return None if seconds is None else str(round(seconds * 1000) * 1_000_000)


def to_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def write_parquet(path: Path, rows: Rows, schema: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=400)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def document_objects(docs: Sequence[Doc] | None, name: str = "page_content") -> list[dict[str, Any]] | None:
    return None if docs is None else [{"id": d.id, name: d.text, "metadata": {"source": "kb", "score": d.score}} for d in docs]
