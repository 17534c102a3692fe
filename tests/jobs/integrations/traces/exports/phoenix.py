"""Phoenix: `get_spans_dataframe().to_parquet()`: attributes are columns, documents are structs with dotted names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.jobs.integrations.traces.exports.common import Rows, to_datetime, to_json, write_parquet
from tests.jobs.integrations.traces.stories import Doc, S, Story

_KINDS = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "LLM",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "RERANKER",
}


def rows_of(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "name": s.name,
            "span_kind": _KINDS[s.kind],
            "parent_id": s.parent,
            "start_time": to_datetime(s.start),
            "end_time": to_datetime(s.end),
            "status_code": "ERROR" if s.failed else "OK",
            "status_message": "",
            "events": [],
            "context.span_id": s.id,
            "context.trace_id": story.id,
            "attributes.openinference.span.kind": _KINDS[s.kind],
            "attributes.input.value": s.input if isinstance(s.input, str) else to_json(s.input),
            "attributes.input.mime_type": "application/json",
            "attributes.output.value": None if s.kind == "llm" else to_json(s.output),
            "attributes.llm.model_name": s.model,
            "attributes.session.id": story.session,
            "attributes.user.id": story.user,
            "attributes.llm.input_messages": [{"message.role": m["role"], "message.content": m["content"]} for m in s.input]
            if s.kind == "llm"
            else None,
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": s.output["content"]}]
            if s.kind == "llm" and s.output
            else None,
            "attributes.retrieval.documents": _dotted_documents(s.documents) if s.kind == "retriever" else None,
            "attributes.reranker.input_documents": _dotted_documents(s.before),
            "attributes.reranker.output_documents": _dotted_documents(s.documents) if s.kind == "reranker" else None,
        }
        for s in spans
    ]


def _dotted_documents(docs: Sequence[Doc] | None) -> list[dict[str, Any]] | None:
    return docs and [{"document.content": d.text, "document.id": d.id, "document.score": d.score} for d in docs]  # type: ignore[return-value]


def write(folder: Path, day: int, rows: Rows) -> None:
    write_parquet(folder / f"spans-{day}.parquet", rows)
