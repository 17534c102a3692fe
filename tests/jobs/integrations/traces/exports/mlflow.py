"""MLflow: `search_traces()` as JSON Lines, with spans as `Span.to_dict` returns them: attributes are JSON strings."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.jobs.integrations.traces.exports.common import Rows, document_objects, to_json, to_nanoseconds, write_lines
from tests.jobs.integrations.traces.stories import S, Story

_TYPES = {
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "llm": "CHAT_MODEL",
    "embedding": "EMBEDDING",
    "tool": "TOOL",
    "reranker": "RERANKER",
}


def rows_of(story: Story, spans: Sequence[S]) -> Rows:
    root = next((s for s in spans if s.id == story.root), None)
    ended = root is not None and root.end is not None
    metadata = {"mlflow.trace.session": story.session, "mlflow.trace.user": story.user}
    return [
        {
            "trace_id": f"tr-{story.id}",
            "state": "IN_PROGRESS" if not ended else "ERROR" if root and root.failed else "OK",
            "request_time": int((root.start if root else 1) * 1000),
            "request": to_json(root and root.input),
            "response": to_json(root and root.output),
            "trace_metadata": {k: v for k, v in metadata.items() if v},
            "tags": {"mlflow.traceName": "rag"},
            "assessments": [],
            "spans": [
                {
                    "trace_id": story.id,
                    "span_id": s.id,
                    "parent_span_id": s.parent,
                    "name": s.name,
                    "start_time_unix_nano": to_nanoseconds(s.start),
                    "end_time_unix_nano": to_nanoseconds(s.end),
                    "status": {"code": "STATUS_CODE_ERROR" if s.failed else "STATUS_CODE_OK", "message": ""},
                    "events": [],
                    "attributes": {
                        "mlflow.traceRequestId": json.dumps(f"tr-{story.id}"),
                        "mlflow.spanType": json.dumps(_TYPES[s.kind]),
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
                                    document_objects(s.documents)
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


def write(folder: Path, day: int, rows: Rows) -> None:
    write_lines(folder / f"traces-{day}.jsonl", rows)
