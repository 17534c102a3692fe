"""LangSmith: runs in hive folders, with JSON in inputs, outputs and extra; the id of a trace is that of its root run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from tests.jobs.integrations.traces.exports.common import Rows, document_objects, to_datetime, to_json, write_parquet
from tests.jobs.integrations.traces.stories import S, Story


def run_id(trace: str, span: str | None) -> str | None:
    return None if span is None else str(UUID(trace[:16] + span))


def rows_of(story: Story, spans: Sequence[S]) -> Rows:
    root = run_id(story.id, story.root)
    kinds = {"embedding": "embedding", "reranker": "retriever"}
    rows: Rows = []
    for s in spans:
        documents = (
            None
            if s.documents is None
            else {"documents": [{**d, "type": "Document"} for d in document_objects(s.documents) or []]}
        )
        generation = (
            s.output
            and {
                "generations": [
                    [{"text": s.output["content"], "type": "ChatGeneration", "message": _build_message(s.output["content"])}]
                ]
            }
            if s.kind == "llm"
            else None
        )
        inputs = (
            {
                "messages": [
                    [
                        {
                            "id": ["langchain", "schema", "messages", "HumanMessage"],
                            "lc": 1,
                            "type": "constructor",
                            "kwargs": {"content": m["content"], "type": "human"},
                        }
                        for m in s.input
                    ]
                ]
            }
            if s.kind == "llm"
            else s.input
        )
        metadata = {"ls_model_name": s.model, "thread_id": story.session, "user_id": story.user}
        rows.append(
            {
                "id": run_id(story.id, s.id),
                "tenant_id": "t",
                "session_id": "project",
                "trace_id": root,
                "parent_run_id": run_id(story.id, s.parent),
                "is_root": s.parent is None,
                "name": s.name,
                "run_type": kinds.get(s.kind, s.kind),
                "start_time": to_datetime(s.start),
                "end_time": to_datetime(s.end),
                "status": "pending" if s.end is None else "error" if s.failed else "success",
                "error": "RateLimit" if s.failed else None,
                "inputs": to_json(inputs if isinstance(inputs, dict) else {"query": inputs}),
                "outputs": to_json(
                    documents or generation or (s.output if isinstance(s.output, dict) else s.output and {"output": s.output})
                ),
                "extra": to_json({"metadata": {k: v for k, v in metadata.items() if v}, "runtime": {}}),
                "tags": [],
                "dotted_order": f"{s.start}Z{s.id}",
            }
        )
    return rows


def _build_message(content: str) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": content, "type": "ai"},
    }


def write(folder: Path, day: int, rows: Rows) -> None:
    fields = {name: pa.string() for name in rows[0]} | dict.fromkeys(("start_time", "end_time"), pa.timestamp("us", "UTC"))
    schema = pa.schema((fields | {"is_root": pa.bool_(), "tags": pa.list_(pa.string())}).items())
    folder_of_day = (
        folder
        / f"export_id=e{day}"
        / "tenant_id=t"
        / "session_id=project"
        / "resource=runs"
        / "year=2026"
        / "month=11"
        / f"day={22 + day}"
    )
    write_parquet(folder_of_day / "part.parquet", rows, schema)
