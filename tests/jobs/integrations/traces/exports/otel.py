"""OpenTelemetry: OTLP as JSON, one request per line, or spans as rows, by the GenAI conventions; with documents or ids."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.jobs.integrations.traces.exports.common import Rows, to_json, to_nanoseconds, write_lines, write_parquet
from tests.jobs.integrations.traces.stories import S, Story


def ids_rows(story: Story, spans: Sequence[S]) -> Rows:
    """Return retrievals by OpenTelemetry's own conventions: only ids and scores of documents."""
    rows = rows_of(story, [s for s in spans if s.kind not in ("retriever", "reranker")])
    for s in spans:
        if s.kind == "retriever":
            attributes = {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": s.input,
                "gen_ai.retrieval.documents": json.dumps([{"id": d.id, "score": d.score} for d in s.documents or ()]),
            }
            (row,) = rows_of(story, [replace(s, kind="chain", input=None, output=None)])
            rows.append({**row, "attributes": [{"key": key, "value": _otlp_value(value)} for key, value in attributes.items()]})
    return rows


def rows_of(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "traceId": story.id,
            "spanId": s.id,
            "parentSpanId": s.parent or "",
            "name": s.name,
            "kind": 1,
            "startTimeUnixNano": to_nanoseconds(s.start),
            "endTimeUnixNano": to_nanoseconds(s.end),
            "status": {"code": 2} if s.failed else {},
            "attributes": [
                {"key": key, "value": _otlp_value(value)}
                for key, value in _build_attributes(story, s).items()
                if value is not None
            ],
        }
        for s in spans
    ]


def table_rows(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "trace_id": story.id,
            "span_id": s.id,
            "parent_span_id": s.parent or "",
            "name": s.name,
            "span_kind": "INTERNAL",
            "start_time_unix_nano": int(to_nanoseconds(s.start) or 0),
            "end_time_unix_nano": int(to_nanoseconds(s.end) or 0) or None,
            "status_code": "STATUS_CODE_ERROR" if s.failed else "STATUS_CODE_UNSET",
            "attributes": json.dumps({key: value for key, value in _build_attributes(story, s).items() if value is not None}),
        }
        for s in spans
    ]


def _otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_otlp_value(item) for item in value]}}
    return (
        {"kvlistValue": {"values": [{"key": k, "value": _otlp_value(v)} for k, v in value.items()]}}
        if isinstance(value, dict)
        else {"stringValue": value}
    )


def _build_attributes(story: Story, s: S) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.conversation.id": story.session, "enduser.id": story.user}
    if s.kind == "llm":
        parts = [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in s.input]
        output = s.output and [
            {"role": "assistant", "parts": [{"type": "text", "content": s.output["content"]}], "finish_reason": "stop"}
        ]
        return {
            **attributes,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": s.model,
            "gen_ai.input.messages": json.dumps(parts),
            "gen_ai.output.messages": output and json.dumps(output),
        }
    if s.kind in ("retriever", "reranker"):
        name = "retrieval.documents" if s.kind == "retriever" else "reranker.output_documents"
        for k, d in enumerate(s.documents or ()):
            attributes |= {
                f"{name}.{k}.document.content": d.text,
                f"{name}.{k}.document.id": d.id,
                f"{name}.{k}.document.score": d.score,
            }
        return {**attributes, "openinference.span.kind": s.kind.upper(), "input.value": s.input}
    operation = {"embedding": "embeddings", "tool": "execute_tool"}.get(s.kind)
    return {
        **attributes,
        "gen_ai.operation.name": operation,
        "input.value": to_json(s.input),
        "output.value": to_json(s.output),
    }


def write(folder: Path, day: int, rows: Rows) -> None:
    requests = [rows[start : start + 50] for start in range(0, len(rows), 50)]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "rag"}}]}
    lines = [
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}
        for spans in requests
    ]
    write_lines(folder / f"traces-{day}.jsonl", lines)


def write_table(folder: Path, day: int, rows: Rows) -> None:
    write_parquet(folder / f"spans-{day}.parquet", rows)
