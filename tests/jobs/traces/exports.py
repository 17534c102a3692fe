"""Exports as each tool writes them, by its documentation, of the traces of `stories`: two nights of each."""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from tests.jobs.traces.stories import Doc, S, Story, nights

Rows = list[dict[str, Any]]


def moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def nanos(seconds: float | None) -> str | None:
    return None if seconds is None else str(round(seconds * 1000) * 1_000_000)


def as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def write_parquet(path: Path, rows: Rows, schema: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=400)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


@dataclass(frozen=True)
class Tool:
    """How a tool exports.

    Attributes:
        rows: The records of some spans of a trace.
        write: Writes a night's records below a folder.
        at_end: See `stories.nights`.
        row_id: The trace's id as the tool has it.
        whole: The second night has all of a trace that it has anything of.
    """

    rows: Callable[[Story, Sequence[S]], Rows]
    write: Callable[[Path, int, Rows], None]
    at_end: bool = False
    row_id: Callable[[str], str] = str
    whole: bool = False


def write_export(tool: Tool, folder: Path, told: Sequence[Story], night: int) -> None:
    """One night's export; the second also has some records of the first again, as neighbouring windows share a border."""
    rows: Rows = []
    for number, story in enumerate(told):
        first, second = nights(story, at_end=tool.at_end)
        again = [] if number % 40 else first
        spans = first if night == 1 else [*second, *again]
        spans = list(story.spans) if night == 2 and tool.whole and second else spans
        rows += tool.rows(story, spans) if spans else []
    rows.sort(key=lambda row: hash(str(row)) % 1009)  # no tool promises an order
    tool.write(folder, night, rows)


def texts(docs: Sequence[Doc] | None, name: str = "page_content") -> list[dict[str, Any]] | None:
    return None if docs is None else [{"id": d.id, name: d.text, "metadata": {"source": "kb", "score": d.score}} for d in docs]


# Langfuse: observations_v2, Parquet; input and output are text or JSON, a root's parent is an empty string.
_LANGFUSE = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "GENERATION",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "SPAN",
}


def langfuse_rows(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "id": s.id,
            "trace_id": story.id,
            "project_id": "p",
            "environment": "default",
            "type": _LANGFUSE[s.kind],
            "parent_observation_id": s.parent or "",
            "is_root_observation": s.parent is None,
            "start_time": moment(s.start),
            "end_time": moment(s.end),
            "name": s.name,
            "metadata": [("k", "v")],
            "level": "ERROR" if s.failed else "DEFAULT",
            "status_message": "",
            "input": s.input if isinstance(s.input, str) else as_json(s.input),
            "output": as_json(texts(s.documents) if s.documents is not None else s.output) or "",
            "provided_model_name": s.model or "",
            "user_id": story.user or "",
            "session_id": story.session or "",
            "trace_name": "rag",
            "tags": ["t"],
            "usage_details": [("input", 5)],
        }
        for s in spans
    ]


def _write_langfuse(folder: Path, night: int, rows: Rows) -> None:
    fields = {name: pa.string() for name in rows[0]} | {
        "is_root_observation": pa.bool_(),
        "start_time": pa.timestamp("us"),
        "end_time": pa.timestamp("us"),
        "metadata": pa.map_(pa.string(), pa.string()),
        "tags": pa.list_(pa.string()),
        "usage_details": pa.map_(pa.string(), pa.uint64()),
    }
    plain = [{**row, **{n: row[n] and row[n].replace(tzinfo=None) for n in ("start_time", "end_time")}} for row in rows]
    write_parquet(folder / "p" / "observations_v2" / f"2026-11-2{night + 3}.parquet", plain, pa.schema(fields.items()))
    score = {
        "id": "x",
        "trace_id": "t",
        "observation_id": None,
        "name": "n",
        "data_type": "NUMERIC",
        "value": 1.0,
        "timestamp": "now",
    }
    write_parquet(folder / "p" / "scores" / f"2026-11-2{night + 3}.parquet", [score])
    (folder / "p" / "manifests").mkdir(exist_ok=True)
    (folder / "p" / "manifests" / f"{night}.json").write_text(
        json.dumps({"tables": ["observations_v2"], "files": [{"key": "x"}]}, indent=1)
    )


def langfuse_legacy_rows(story: Story, spans: Sequence[S]) -> Rows:
    """`traces/` and `observations/`, as JSON Lines; the trace has the question and the answer, the root's have none."""
    rows = []
    for row in langfuse_rows(story, [s for s in spans if s.id != story.root]):
        kept = {k: v for k, v in row.items() if k not in ("user_id", "session_id", "trace_name", "tags", "is_root_observation")}
        parent = "" if kept["parent_observation_id"] == story.root else kept["parent_observation_id"]
        rows.append(
            {
                **kept,
                "parent_observation_id": parent,
                "metadata": {},
                "usage_details": {},
                "start_time": _spelt(row["start_time"]),
                "end_time": _spelt(row["end_time"]),
            }
        )
    root = next((s for s in spans if s.id == story.root), None)
    if root is not None:
        rows.append(
            {
                "id": story.id,
                "timestamp": _spelt(moment(root.start)),
                "name": "rag",
                "project_id": "p",
                "user_id": story.user,
                "session_id": story.session,
                "input": as_json(root.input),
                "output": as_json(root.output),
                "tags": [],
            }
        )
    return rows


def _spelt(when: datetime | None) -> str | None:
    return None if when is None else f"{when:%Y-%m-%d %H:%M:%S.%f}"


def _write_langfuse_legacy(folder: Path, night: int, rows: Rows) -> None:
    for table in ("traces", "observations"):
        mine = [row for row in rows if ("trace_id" in row) == (table == "observations")]
        write_lines(folder / "p" / table / f"2026-11-2{night + 3}.jsonl.gz", mine)


# LangSmith: runs, hive folders, JSON in inputs, outputs and extra; the trace's id is that of its root run.
def run_id(trace: str, span: str | None) -> str | None:
    return None if span is None else str(UUID(trace[:16] + span))


def langsmith_rows(story: Story, spans: Sequence[S]) -> Rows:
    root = run_id(story.id, story.root)
    kinds = {"embedding": "embedding", "reranker": "retriever"}
    rows: Rows = []
    for s in spans:
        documents = (
            None if s.documents is None else {"documents": [{**d, "type": "Document"} for d in texts(s.documents) or []]}
        )
        generation = (
            s.output
            and {
                "generations": [
                    [{"text": s.output["content"], "type": "ChatGeneration", "message": _constructed(s.output["content"])}]
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
                "start_time": moment(s.start),
                "end_time": moment(s.end),
                "status": "pending" if s.end is None else "error" if s.failed else "success",
                "error": "RateLimit" if s.failed else None,
                "inputs": as_json(inputs if isinstance(inputs, dict) else {"query": inputs}),
                "outputs": as_json(
                    documents or generation or (s.output if isinstance(s.output, dict) else s.output and {"output": s.output})
                ),
                "extra": as_json({"metadata": {k: v for k, v in metadata.items() if v}, "runtime": {}}),
                "tags": [],
                "dotted_order": f"{s.start}Z{s.id}",
            }
        )
    return rows


def _constructed(said: str) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": said, "type": "ai"},
    }


def _write_langsmith(folder: Path, night: int, rows: Rows) -> None:
    fields = {name: pa.string() for name in rows[0]} | dict.fromkeys(("start_time", "end_time"), pa.timestamp("us", "UTC"))
    schema = pa.schema((fields | {"is_root": pa.bool_(), "tags": pa.list_(pa.string())}).items())
    place = (
        folder
        / f"export_id=e{night}"
        / "tenant_id=t"
        / "session_id=project"
        / "resource=runs"
        / "year=2026"
        / "month=11"
        / f"day={22 + night}"
    )
    write_parquet(place / "part.parquet", rows, schema)


# Phoenix: get_spans_dataframe().to_parquet(): attributes are columns, documents a list of structs with dots in their names.
_OPENINFERENCE = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "LLM",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "RERANKER",
}


def phoenix_rows(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "name": s.name,
            "span_kind": _OPENINFERENCE[s.kind],
            "parent_id": s.parent,
            "start_time": moment(s.start),
            "end_time": moment(s.end),
            "status_code": "ERROR" if s.failed else "OK",
            "status_message": "",
            "events": [],
            "context.span_id": s.id,
            "context.trace_id": story.id,
            "attributes.openinference.span.kind": _OPENINFERENCE[s.kind],
            "attributes.input.value": s.input if isinstance(s.input, str) else as_json(s.input),
            "attributes.input.mime_type": "application/json",
            "attributes.output.value": None if s.kind == "llm" else as_json(s.output),
            "attributes.llm.model_name": s.model,
            "attributes.session.id": story.session,
            "attributes.user.id": story.user,
            "attributes.llm.input_messages": [{"message.role": m["role"], "message.content": m["content"]} for m in s.input]
            if s.kind == "llm"
            else None,
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": s.output["content"]}]
            if s.kind == "llm" and s.output
            else None,
            "attributes.retrieval.documents": _dotted(s.documents) if s.kind == "retriever" else None,
            "attributes.reranker.input_documents": _dotted(s.before),
            "attributes.reranker.output_documents": _dotted(s.documents) if s.kind == "reranker" else None,
        }
        for s in spans
    ]


def _dotted(docs: Sequence[Doc] | None) -> list[dict[str, Any]] | None:
    return docs and [{"document.content": d.text, "document.id": d.id, "document.score": d.score} for d in docs]  # type: ignore[return-value]


def _write_phoenix(folder: Path, night: int, rows: Rows) -> None:
    write_parquet(folder / f"spans-{night}.parquet", rows)


# MLflow: search_traces() as JSON Lines, the spans as `Span.to_dict` has them: attributes are JSON in strings.
_MLFLOW = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "CHAT_MODEL",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "RERANKER",
}


def mlflow_rows(story: Story, spans: Sequence[S]) -> Rows:
    root = next((s for s in spans if s.id == story.root), None)
    ended = root is not None and root.end is not None
    metadata = {"mlflow.trace.session": story.session, "mlflow.trace.user": story.user}
    return [
        {
            "trace_id": f"tr-{story.id}",
            "state": "IN_PROGRESS" if not ended else "ERROR" if root and root.failed else "OK",
            "request_time": int((root.start if root else 1) * 1000),
            "request": as_json(root and root.input),
            "response": as_json(root and root.output),
            "trace_metadata": {k: v for k, v in metadata.items() if v},
            "tags": {"mlflow.traceName": "rag"},
            "assessments": [],
            "spans": [
                {
                    "trace_id": story.id,
                    "span_id": s.id,
                    "parent_span_id": s.parent,
                    "name": s.name,
                    "start_time_unix_nano": nanos(s.start),
                    "end_time_unix_nano": nanos(s.end),
                    "status": {"code": "STATUS_CODE_ERROR" if s.failed else "STATUS_CODE_OK", "message": ""},
                    "events": [],
                    "attributes": {
                        "mlflow.traceRequestId": json.dumps(f"tr-{story.id}"),
                        "mlflow.spanType": json.dumps(_MLFLOW[s.kind]),
                        "mlflow.spanInputs": json.dumps(
                            {"messages": s.input}
                            if s.kind == "llm"
                            else {"query": s.input}
                            if isinstance(s.input, str)
                            else s.input
                        ),
                        **(
                            {
                                "mlflow.spanOutputs": json.dumps(
                                    texts(s.documents)
                                    if s.documents is not None
                                    else {"choices": [{"message": s.output}]}
                                    if s.kind == "llm"
                                    else s.output
                                )
                            }
                            if s.output is not None or s.documents is not None
                            else {}
                        ),
                        **({"mlflow.chat.model": json.dumps(s.model)} if s.model else {}),
                    },
                }
                for s in spans
            ],
        }
    ]


def _write_mlflow(folder: Path, night: int, rows: Rows) -> None:
    write_lines(folder / f"traces-{night}.jsonl", rows)


# OpenTelemetry: OTLP as JSON, a request a line, by the conventions of GenAI; documents by those of OpenInference, or ids alone.
def otel_ids_rows(story: Story, spans: Sequence[S]) -> Rows:
    """Retrievals as OpenTelemetry's own conventions tell them: by ids and scores."""
    rows = otel_rows(story, [s for s in spans if s.kind not in ("retriever", "reranker")])
    for s in spans:
        if s.kind == "retriever":
            told = {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": s.input,
                "gen_ai.retrieval.documents": json.dumps([{"id": d.id, "score": d.score} for d in s.documents or ()]),
            }
            (row,) = otel_rows(story, [replace(s, kind="chain", input=None, output=None)])
            rows.append({**row, "attributes": [{"key": key, "value": _any(value)} for key, value in told.items()]})
    return rows


def otel_rows(story: Story, spans: Sequence[S]) -> Rows:
    return [
        {
            "traceId": story.id,
            "spanId": s.id,
            "parentSpanId": s.parent or "",
            "name": s.name,
            "kind": 1,
            "startTimeUnixNano": nanos(s.start),
            "endTimeUnixNano": nanos(s.end),
            "status": {"code": 2} if s.failed else {},
            "attributes": [
                {"key": key, "value": _any(value)} for key, value in _otel_attributes(story, s).items() if value is not None
            ],
        }
        for s in spans
    ]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return (
        {"kvlistValue": {"values": [{"key": k, "value": _any(v)} for k, v in value.items()]}}
        if isinstance(value, dict)
        else {"stringValue": value}
    )


def _otel_attributes(story: Story, s: S) -> dict[str, Any]:
    found: dict[str, Any] = {"gen_ai.conversation.id": story.session, "enduser.id": story.user}
    if s.kind == "llm":
        parts = [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in s.input]
        said = s.output and [
            {"role": "assistant", "parts": [{"type": "text", "content": s.output["content"]}], "finish_reason": "stop"}
        ]
        return {
            **found,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": s.model,
            "gen_ai.input.messages": json.dumps(parts),
            "gen_ai.output.messages": said and json.dumps(said),
        }
    if s.kind in ("retriever", "reranker"):
        name = "retrieval.documents" if s.kind == "retriever" else "reranker.output_documents"
        for k, d in enumerate(s.documents or ()):
            found |= {
                f"{name}.{k}.document.content": d.text,
                f"{name}.{k}.document.id": d.id,
                f"{name}.{k}.document.score": d.score,
            }
        return {**found, "openinference.span.kind": s.kind.upper(), "input.value": s.input}
    named = {"embedding": "embeddings", "tool": "execute_tool"}.get(s.kind)
    return {**found, "gen_ai.operation.name": named, "input.value": as_json(s.input), "output.value": as_json(s.output)}


def _write_otel(folder: Path, night: int, rows: Rows) -> None:
    requests = [rows[at : at + 50] for at in range(0, len(rows), 50)]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "rag"}}]}
    lines = [
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": some}]}]}
        for some in requests
    ]
    write_lines(folder / f"traces-{night}.jsonl", lines)


TOOLS = {
    "langfuse": Tool(langfuse_rows, _write_langfuse),
    "langfuse legacy": Tool(langfuse_legacy_rows, _write_langfuse_legacy),
    "langsmith": Tool(langsmith_rows, _write_langsmith),
    "phoenix": Tool(phoenix_rows, _write_phoenix, at_end=True),
    "mlflow": Tool(mlflow_rows, _write_mlflow, row_id=lambda trace: f"tr-{trace}", whole=True),
    "otel": Tool(otel_rows, _write_otel, at_end=True),
    "otel ids only": Tool(otel_ids_rows, _write_otel, at_end=True),
}
