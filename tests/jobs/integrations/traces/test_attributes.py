"""Test that attributes mean the same in every form that tools and collectors write."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.input.find import find_files
from ragassay.jobs.integrations.traces.content import extract_question, extract_response
from ragassay.jobs.integrations.traces.fields import to_microseconds
from ragassay.jobs.integrations.traces.parse_spans import parse_spans
from ragassay.jobs.integrations.traces.presets import PRESETS
from ragassay.jobs.integrations.traces.read_export import read_records
from ragassay.jobs.integrations.traces.span import Span, SpanKind

DOCUMENTS = [{"document": {"content": "Text a.", "id": "a", "score": 0.5}}, {"document": {"content": "Text b.", "id": "b"}}]
FLAT = {
    "openinference.span.kind": "RETRIEVER", "input.value": "Open?", "retrieval.documents.0.document.content": "Text a.",
    "retrieval.documents.0.document.id": "a", "retrieval.documents.0.document.score": 0.5,
    "retrieval.documents.1.document.content": "Text b.", "retrieval.documents.1.document.id": "b",
}  # fmt: skip
NESTED = {"openinference": {"span": {"kind": "RETRIEVER"}}, "input": {"value": "Open?"}, "retrieval": {"documents": DOCUMENTS}}
IDS = {"trace_id": "ab" * 16, "span_id": "cd" * 8, "name": "search", "start_time": "2026-11-23T10:00:00Z"}


def only_span(spans: Any) -> Span:
    (span,) = spans
    assert isinstance(span, Span)
    return span


@pytest.mark.parametrize(
    "record",
    [
        {**IDS, "attributes": FLAT},
        {**IDS, "attributes": NESTED},
        {**IDS, "attributes": json.dumps(FLAT)},
        {**IDS, "attributes": json.dumps(NESTED)},
        {**IDS, "attributes": list(FLAT.items())},
        {**IDS, "attributes": [{"key": k, "value": {"stringValue": str(v)}} for k, v in FLAT.items()]},
        {**IDS, **{f"attributes.{k}": v for k, v in FLAT.items()}},
        {**IDS, **{f"attributes.{k}": v for k, v in FLAT.items() if "documents" not in k},
         "attributes.retrieval.documents": DOCUMENTS},
        {**IDS, **{f"attributes.{k}": v for k, v in FLAT.items() if "documents" not in k},
         "attributes.retrieval.documents": json.dumps(DOCUMENTS)},
        {"TraceId": IDS["trace_id"], "SpanId": IDS["span_id"], "SpanName": "search", "Timestamp": "2026-11-23 10:00:00",
         "SpanAttributes": list(FLAT.items()), "Duration": 5_000_000},
    ],
)  # fmt: skip
@pytest.mark.parametrize("preset", ["otel", "phoenix"])
def test_documents_are_read_in_every_form(record: dict[str, Any], preset: str) -> None:
    if preset == "phoenix" and "TraceId" in record:
        record = {**IDS, "attributes": record["SpanAttributes"]}
    span = only_span(parse_spans(PRESETS[preset], record))
    assert (
        span.kind is SpanKind.RETRIEVER and span.question == "Open?" and (span.trace_id, span.span_id) == ("ab" * 16, "cd" * 8)
    )
    assert span.documents and [(d.text, d.id) for d in span.documents] == [("Text a.", "a"), ("Text b.", "b")]
    assert span.start == to_microseconds("2026-11-23T10:00:00+00:00")


def test_ids_without_texts_are_read_as_documents() -> None:
    documents = json.dumps([{"id": "doc_123", "score": 0.95}, {"id": "doc_456", "score": 0.87}])
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": documents,
        "gen_ai.retrieval.query.text": "Open?",
    }
    span = only_span(parse_spans(PRESETS["otel"], {**IDS, "attributes": attributes}))
    assert span.documents and [(d.text, d.id) for d in span.documents] == [(None, "doc_123"), (None, "doc_456")]
    assert span.question == "Open?" and span.kind is SpanKind.RETRIEVER


def test_ids_are_read_from_base64_and_bytes() -> None:
    import base64

    coded = {**IDS, "trace_id": base64.b64encode(bytes.fromhex("ab" * 16)).decode(), "span_id": bytes.fromhex("cd" * 8)}
    span = only_span(parse_spans(PRESETS["otel"], {**coded, "parent_span_id": "0000000000000000"}))
    assert (span.trace_id, span.span_id, span.parent_id) == ("ab" * 16, "cd" * 8, None)


def test_messages_are_read_from_events_of_earlier_conventions() -> None:
    events = [
        {"name": "gen_ai.user.message", "attributes": {"content": "Open?"}},
        {"name": "gen_ai.choice", "attributes": {"message": json.dumps({"content": "At nine."})}},
    ]
    span = only_span(parse_spans(PRESETS["otel"], {**IDS, "attributes": {"gen_ai.operation.name": "chat"}, "events": events}))
    assert (span.question, span.response, span.kind) == ("Open?", "At nine.", SpanKind.GENERATION)
    numbered = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Open?", "llm.request.type": "chat",
                "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "At nine."}  # fmt: skip
    quoted = {name: json.dumps(value) for name, value in numbered.items()}  # as MLflow writes each attribute
    for span in (
        only_span(parse_spans(PRESETS["otel"], {**IDS, "attributes": numbered})),
        list(parse_spans(PRESETS["mlflow"], {**IDS, "spans": [{**IDS, "attributes": quoted}]}))[1],
    ):
        assert (span.question, span.response, span.kind) == ("Open?", "At nine.", SpanKind.GENERATION)


def test_a_span_without_a_retrieval_kind_is_a_retrieval_by_name_and_documents() -> None:
    run = {
        "id": "x",
        "trace_id": "t",
        "name": "RetrievalQA",
        "run_type": "chain",
        "outputs": json.dumps({"result": "At nine."}),
    }
    span = only_span(parse_spans(PRESETS["langsmith"], run))
    assert span.kind is SpanKind.OTHER and span.documents is None and span.response == "At nine."
    tool = {
        **run,
        "name": "retriever_tool",
        "run_type": "tool",
        "outputs": json.dumps({"output": [{"page_content": "Text a."}]}),
    }
    span = only_span(parse_spans(PRESETS["langsmith"], tool))
    assert span.kind is SpanKind.RETRIEVER and span.documents and span.documents[0].text == "Text a."
    words = {
        "id": "x",
        "traceId": "t",
        "type": "RETRIEVER",
        "name": "r",
        "output": "Plain words.",
        "startTime": "2026-11-23 10:00:00",
    }
    span = only_span(parse_spans(PRESETS["langfuse"], words))
    assert span.documents and span.documents[0].text == "Plain words."


def test_records_without_spans_yield_none() -> None:
    score = {"id": "s", "trace_id": "t", "name": "x", "value": 1.0, "data_type": "NUMERIC", "observation_id": None}
    assert not list(parse_spans(PRESETS["langfuse"], score)) and not list(
        parse_spans(PRESETS["langfuse"], {"tables": [], "files": []})
    )
    assert not any(list(parse_spans(preset, {"a": 1})) for preset in PRESETS.values())


def test_mlflow_traces_are_read_in_every_form() -> None:
    attributes = {
        "mlflow.spanType": '"RETRIEVER"',
        "mlflow.spanOutputs": '[{"page_content": "Text a.", "metadata": {"doc_uri": "u"}}]',
    }
    old = {"context": {"trace_id": "0x1", "span_id": "0x2"}, "parent_id": None, "start_time": 1795392000000000000,
           "end_time": 1795392001000000000, "status_code": "OK", "name": "r", "attributes": attributes}  # fmt: skip
    info = {"request_id": "tr-1", "status": "OK", "timestamp_ms": 1795392000000}
    shapes: list[dict[str, Any]] = [
        {"info": info, "data": {"spans": [old]}},
        {"trace": json.dumps({"info": info, "data": {"spans": [old]}})},
        {**info, "spans": [json.dumps(old)]},
        {**info, "spans": json.dumps([old])},
    ]
    for shape in shapes:
        trace, span = parse_spans(PRESETS["mlflow"], shape)
        assert trace.kind is SpanKind.TRACE and trace.end is not None and trace.trace_id == span.trace_id == "tr-1"
        assert (
            span.documents
            and (span.documents[0].text, span.documents[0].id) == ("Text a.", "u")
            and span.end == 1795392001000000
        )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Open?", "Open?"),
        ('{"question": "Open?", "k": 4}', "Open?"),
        ({"args": ["Open?"], "kwargs": {}}, "Open?"),
        ({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Open?"}]}, "Open?"),
        ([[{"type": "human", "content": "Open?"}]], "Open?"),
        ([{"role": "user", "parts": [{"type": "text", "content": "Open?"}]}], "Open?"),
        ({"x": 1, "y": {"z": 2}}, '{"x": 1, "y": {"z": 2}}'),
        ({"input": {"query": "Open?"}}, "Open?"),
        ("", None),
        (None, None),
        ("null", None),
    ],
)
def test_the_question_of_an_input_is_extracted(value: Any, expected: str | None) -> None:
    assert extract_question(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("At nine.", "At nine."),
        ({"answer": "At nine.", "documents": [{"page_content": "x"}]}, "At nine."),
        ({"choices": [{"message": {"role": "assistant", "content": "At nine."}}]}, "At nine."),
        ({"generations": [[{"text": "At nine.", "message": {"kwargs": {"content": "At nine."}}}]]}, "At nine."),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}, None),
        ({"content": [{"type": "text", "text": "At"}, {"type": "text", "text": "nine."}]}, "At\nnine."),
        ({"candidates": [{"content": {"parts": [{"text": "At nine."}]}}]}, "At nine."),
        ({"messages": [{"type": "human", "content": "Q"}, {"type": "ai", "content": "At nine."}]}, "At nine."),
        ([0.1, 0.2], "[0.1, 0.2]"),
        ({"result": "half \ud83d"}, "half \ufffd"),
    ],
)
def test_the_response_of_an_output_is_extracted(value: Any, expected: str | None) -> None:
    assert extract_response(value) == expected


def test_times_are_read_in_every_form() -> None:
    expected = 1_795_392_000_500_000
    values: list[Any] = [
        1795392000.5,
        1795392000500,
        expected,
        expected * 1000,
        str(expected * 1000),
        "2026-11-23T00:00:00.5Z",
        "2026-11-23 00:00:00.500000",
    ]
    assert [to_microseconds(value) for value in values] == [expected] * len(values)
    invalid: list[Any] = [None, "", "soon", 0, -1, True, float("nan"), []]
    assert [to_microseconds(value) for value in invalid] == [None] * len(invalid)


def test_parquet_columns_of_every_type_are_read(tmp_path: Path) -> None:
    """Nanoseconds, maps, dictionaries and invalid UTF-8: every row becomes a record."""
    table = pa.table(
        {
            "context.trace_id": pa.array(["t1", "t2"]).dictionary_encode(),
            "context.span_id": ["a", "b"],
            "start_time": pa.array([1795392000_000000001, None], pa.timestamp("ns", "UTC")),
            "attributes.input.value": pa.array([b"caf\xe9", b"x"]).view(pa.string()),
            "events": pa.array([[{"at": 1}], None], pa.list_(pa.struct([("at", pa.timestamp("ns"))]))),
            "attributes.metadata": pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())),
            "latency": pa.array([5, 6], pa.duration("ns")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", store_schema=True)
    export = find_files(str(tmp_path), (".parquet",), "")
    spans = [
        only_span(parse_spans(PRESETS["phoenix"], record))
        for record in read_records(export.fs, export.files[0], lambda part: None)
    ]
    assert [(s.trace_id, s.question, s.start) for s in spans] == [("t1", "caf\\xe9", 1795392000_000000), ("t2", "x", None)]
