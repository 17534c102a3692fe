"""Langfuse: `observations_v2` as Parquet; inputs and outputs are text or JSON, and a root has an empty parent."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from tests.jobs.integrations.traces.exports.common import (
    Rows,
    document_objects,
    to_datetime,
    to_json,
    write_lines,
    write_parquet,
)
from tests.jobs.integrations.traces.stories import S, Story

_TYPES = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "GENERATION",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "SPAN",
}


def rows_of(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "id": s.id,
            "trace_id": story.id,
            "project_id": "p",
            "environment": "default",
            "type": _TYPES[s.kind],
            "parent_observation_id": s.parent or "",
            "is_root_observation": s.parent is None,
            "start_time": to_datetime(s.start),
            "end_time": to_datetime(s.end),
            "name": s.name,
            "metadata": [("k", "v")],
            "level": "ERROR" if s.failed else "DEFAULT",
            "status_message": "",
            "input": s.input if isinstance(s.input, str) else to_json(s.input),
            "output": to_json(document_objects(s.documents) if s.documents is not None else s.output) or "",
            "provided_model_name": s.model or "",
            "user_id": story.user or "",
            "session_id": story.session or "",
            "trace_name": "rag",
            "tags": ["t"],
            "usage_details": [("input", 5)],
        }
        for s in spans
    ]


def write(folder: Path, day: int, rows: Rows) -> None:
    fields = {name: pa.string() for name in rows[0]} | {
        "is_root_observation": pa.bool_(),
        "start_time": pa.timestamp("us"),
        "end_time": pa.timestamp("us"),
        "metadata": pa.map_(pa.string(), pa.string()),
        "tags": pa.list_(pa.string()),
        "usage_details": pa.map_(pa.string(), pa.uint64()),
    }
    plain = [{**row, **{n: row[n] and row[n].replace(tzinfo=None) for n in ("start_time", "end_time")}} for row in rows]
    write_parquet(folder / "p" / "observations_v2" / f"2026-11-2{day + 3}.parquet", plain, pa.schema(fields.items()))
    score = {
        "id": "x",
        "trace_id": "t",
        "observation_id": None,
        "name": "n",
        "data_type": "NUMERIC",
        "value": 1.0,
        "timestamp": "now",
    }
    write_parquet(folder / "p" / "scores" / f"2026-11-2{day + 3}.parquet", [score])
    (folder / "p" / "manifests").mkdir(exist_ok=True)
    (folder / "p" / "manifests" / f"{day}.json").write_text(
        json.dumps({"tables": ["observations_v2"], "files": [{"key": "x"}]}, indent=1)
    )


def legacy_rows(story: Story, spans: Sequence[S]) -> Rows:
    """Return `traces/` and `observations/` as JSON Lines: the trace, not a root span, has question and response."""
    rows = []
    for row in rows_of(story, [s for s in spans if s.id != story.root]):
        kept = {k: v for k, v in row.items() if k not in ("user_id", "session_id", "trace_name", "tags", "is_root_observation")}
        parent = "" if kept["parent_observation_id"] == story.root else kept["parent_observation_id"]
        rows.append(
            {
                **kept,
                "parent_observation_id": parent,
                "metadata": {},
                "usage_details": {},
                "start_time": _format_time(row["start_time"]),
                "end_time": _format_time(row["end_time"]),
            }
        )
    root = next((s for s in spans if s.id == story.root), None)
    if root is not None:
        rows.append(
            {
                "id": story.id,
                "timestamp": _format_time(to_datetime(root.start)),
                "name": "rag",
                "project_id": "p",
                "user_id": story.user,
                "session_id": story.session,
                "input": to_json(root.input),
                "output": to_json(root.output),
                "tags": [],
            }
        )
    return rows


def _format_time(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%d %H:%M:%S.%f}"


def write_legacy(folder: Path, day: int, rows: Rows) -> None:
    for table in ("traces", "observations"):
        table_rows = [row for row in rows if ("trace_id" in row) == (table == "observations")]
        write_lines(folder / "p" / table / f"2026-11-2{day + 3}.jsonl.gz", table_rows)
