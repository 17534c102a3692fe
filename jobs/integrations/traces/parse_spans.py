"""Convert export records to spans, by the field names of a preset."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragassay.jobs.input.documents import Document, extract_text, find_documents, parse_json_if_possible, replace_surrogates
from ragassay.jobs.input.messages import ASSISTANT, ROLE_SYNONYMS, USER
from ragassay.jobs.integrations.traces.content import extract_question, extract_response
from ragassay.jobs.integrations.traces.fields import (
    decode_json,
    first_value,
    normalize_names,
    read_attributes,
    to_list,
    to_microseconds,
    to_object,
    to_text,
    unflatten,
    within_range,
)
from ragassay.jobs.integrations.traces.presets import ExportPreset, FieldNames
from ragassay.jobs.integrations.traces.span import RETRIEVAL_KINDS, Span, SpanKind

_SYNONYMS = {
    SpanKind.RETRIEVER: "retriever retrieval",
    SpanKind.RERANKER: "reranker rerank",
    SpanKind.GENERATION: "llm chat_model generation chat completion text_completion generate_content",
    SpanKind.EMBEDDING: "embedding embeddings",
    SpanKind.TOOL: "tool execute_tool",
    SpanKind.EVALUATOR: "evaluator guardrail evaluation",
}
KINDS = {synonym: kind for kind, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
"""Span kinds by the lowercase names that tools use; any other name is `SpanKind.OTHER`."""

RECORD_ERRORS = (ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError)
"""Exceptions of a record with a field of an unexpected type or value."""

_RETRIEVES = re.compile(r"\bretriev(e|er|al|ers)\b")
_RERANKS = re.compile(r"\bre ?rank(er|ing)?\b")


def parse_spans(preset: ExportPreset, record: Mapping[str, Any]) -> Iterator[Span]:
    """Return the spans of a record, preceded by a span of kind TRACE if it describes a whole trace.

    Records of other kinds, such as scores, have no spans.
    """
    fields = _read_fields(record, preset.trace.objects if preset.trace else {})
    items: list[Any] = [record]
    if preset.lists and not (preset.is_span and first_value(fields, preset.lists[0]) is None):
        items = [fields]
        for names in preset.lists:
            items = [to_object(item) for parent in items for item in to_list(first_value(normalize_names(parent), names))]
    trace_id = preset.read_trace_id(first_value(fields, preset.trace.trace_id)) if preset.trace else None
    spans = [span for item in items if (span := _read_span(preset, item, trace_id if preset.lists else None))]
    if preset.trace and (trace_id := trace_id or next((span.trace_id for span in spans), None)):
        is_whole = first_value(fields, preset.trace.requires_any) is not None or (spans and preset.lists)
        if is_whole and first_value(fields, preset.trace.excludes) is None:
            yield _read_trace(preset, preset.trace, fields, trace_id, has_spans=bool(spans))
    yield from spans


def _read_fields(record: Mapping[str, Any], objects: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a record and of its nested objects by plain names."""
    fields = normalize_names(record)
    for name, candidates in objects.items():
        inner = next(
            (value_object for candidate in candidates.split() if (value_object := to_object(fields.get(candidate)))), {}
        )
        for key, value in normalize_names(inner).items():
            fields.setdefault(f"{name}.{key}" if name else key, value)
    return fields


def _read_trace(
    preset: ExportPreset, field_names: FieldNames, fields: Mapping[str, Any], trace_id: str, *, has_spans: bool
) -> Span:
    """Read the description of a trace. Texts are left out if the spans have them: they may be truncated here."""
    return Span(
        trace_id,
        trace_id,
        kind=SpanKind.TRACE,
        name=to_text(first_value(fields, field_names.name)),
        question=None if has_spans else extract_question(preset.read_content(fields, field_names.question)),
        response=None if has_spans else extract_response(preset.read_content(fields, field_names.response)),
        session=to_text(first_value(fields, field_names.session)),
        user=to_text(first_value(fields, field_names.user)),
        **_read_timing(field_names, fields),
    )


def _read_span(preset: ExportPreset, record: Mapping[str, Any], trace_id: str | None) -> Span | None:
    field_names = preset.span
    fields = _read_fields(record, field_names.objects)
    values = _read_values(preset, record, fields)
    own_id, parent_id = (
        preset.read_span_id(first_value(fields, names)) for names in (field_names.span_id, field_names.parent_id)
    )
    trace_id = trace_id or preset.read_trace_id(
        first_value(fields, field_names.trace_id) or preset.read_value(values, field_names.trace_id)
    )
    is_missing = field_names.requires_any and first_value(fields, field_names.requires_any) is None
    is_excluded = first_value(fields, field_names.excludes) is not None
    if own_id is None or trace_id is None or is_missing or is_excluded:
        return None
    name = to_text(first_value(fields, field_names.name))
    kind, documents = _classify(preset, values, name)
    prompt, completion = (
        preset.read_content(values, f"{messages} {value}" if kind is SpanKind.GENERATION else f"{value} {messages}")
        for value, messages in ((field_names.question, field_names.prompt), (field_names.response, field_names.completion))
    )
    if preset.attributes:
        event_prompts, event_completions = _read_event_messages(first_value(fields, field_names.events))
        if prompt is None:
            prompt = event_prompts or first_value(values, field_names.query)
        prompt = _normalize_messages(prompt)
        completion = _normalize_messages(event_completions if completion is None else completion)
    return Span(
        trace_id,
        own_id,
        parent_id=parent_id,
        root=parse_json_if_possible(first_value(fields, field_names.root)) in (True, "true")
        or (preset.root_has_trace_id and not parent_id and own_id == trace_id),
        kind=kind,
        name=name if parent_id else to_text(first_value(fields, f"{field_names.root_name} {field_names.name}")),
        question=extract_question(prompt),
        response=extract_response(completion),
        documents=documents,
        session=to_text(preset.read_value(values, field_names.session)),
        user=to_text(preset.read_value(values, field_names.user)),
        model=to_text(preset.read_value(values, field_names.model)),
        **_read_timing(field_names, fields),
    )


def _read_values(preset: ExportPreset, record: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes or fields that contain a span's kind and content."""
    if not preset.attributes:
        return fields
    attributes = read_attributes(record, preset.attributes)
    attributes = {name: decode_json(value) for name, value in attributes.items()} if preset.has_json_attributes else attributes
    for name, attribute in preset.attribute_fields.items():
        if str(fields.get(name) or "UNKNOWN").upper() != "UNKNOWN":
            attributes.setdefault(attribute, fields[name])
    return attributes


def _read_timing(field_names: FieldNames, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read start, end and failure of a span."""
    start, end = to_microseconds(first_value(fields, field_names.start)), to_microseconds(first_value(fields, field_names.end))
    duration = first_value(fields, field_names.duration)
    if end is None and start is not None and duration is not None:
        end = within_range(start + int(duration) // 1000)
    phase = str(first_value(fields, field_names.phase)).upper().rpartition(".")[2]
    if end is None and phase in field_names.ended_phases.split():
        end = start
    status = str(first_value(fields, field_names.status)).upper()
    failed = status.endswith("ERROR") or status == "2" or bool(first_value(fields, field_names.error))
    return {"start": start, "end": end, "failed": failed}


def _classify(
    preset: ExportPreset, values: Mapping[str, Any], name: str | None
) -> tuple[SpanKind, tuple[Document, ...] | None]:
    """Return the kind of a span and the documents that it retrieved.

    The kind that the tool states takes precedence. A chain, tool or span without a kind is a retrieval if its name suggests one
    and its output is documents.
    """
    field_names = preset.span
    kind = KINDS.get(str(preset.read_value(values, field_names.kind) or "").lower(), SpanKind.OTHER)
    if kind not in (*RETRIEVAL_KINDS, SpanKind.OTHER, SpanKind.TOOL):
        return kind, None

    def output() -> Any:
        """Parse the output only if needed: it can be long."""
        return decode_json(preset.read_content(values, field_names.response))

    document_fields = field_names.documents.split()
    documents = next(
        (items for field in document_fields if (items := find_documents(preset.read_content(values, field)))), None
    )
    words = re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name or "").lower())
    is_reranker = _RERANKS.search(words) is not None
    # Some tools have only retrievals, so a name can make one a reranker.
    retrieval_kind = SpanKind.RERANKER if kind is SpanKind.RERANKER or is_reranker else SpanKind.RETRIEVER
    if kind in RETRIEVAL_KINDS:
        return retrieval_kind, tuple(documents) if documents else _output_documents(output())
    documents = documents or (find_documents(output()) if is_reranker or _RETRIEVES.search(words) else None)
    return (retrieval_kind, tuple(documents)) if documents else (kind, None)


def _output_documents(output: Any) -> tuple[Document, ...] | None:
    """Return the documents in a retrieval's output; plain text is one document. None if there is no output."""
    if isinstance(output, str) and output.strip():
        return (Document(replace_surrogates(output)),)
    return None if output in (None, "") else tuple(find_documents(output) or ())


def _normalize_messages(value: Any) -> Any:
    """Return messages with plain field names, such as `role` instead of `message.role`."""
    value = decode_json(value)
    if not isinstance(value, list):
        return value
    return [_normalize_message(item) if isinstance(item, Mapping) else item for item in value]


def _normalize_message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message of OpenInference, OpenLLMetry or OpenTelemetry (with parts) as a plain message."""
    inner = item.get("message")
    fields = _strip_prefix("message.", inner if isinstance(inner, Mapping) and "role" not in item else item)
    contents = unflatten(fields, "contents")
    if fields.get("content") is None and contents:
        parts = [(part, part.get("message_content")) for part in contents if isinstance(part, Mapping)]
        fields["content"] = [
            _strip_prefix("message_content.", inner if isinstance(inner, Mapping) else part) for part, inner in parts
        ]
    if isinstance(fields.get("parts"), list) and "content" not in fields:
        fields["content"] = [part for part in fields.pop("parts") if isinstance(part, Mapping)]
    return fields if "role" in fields else item


def _strip_prefix(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).removeprefix(prefix): value for name, value in fields.items()}


def _read_event_messages(events: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the prompts and completions among events: `gen_ai.user.message`, `gen_ai.choice`, `gen_ai.content.prompt`."""
    prompts: list[dict[str, Any]] = []
    completions: list[dict[str, Any]] = []
    for event in map(to_object, to_list(events)):
        name = str(normalize_names(event).get("name") or "")
        values = read_attributes({str(key).lower(): value for key, value in event.items()}, "attributes")
        content = first_value(values, "content gen_ai.prompt gen_ai.completion")
        if name == "gen_ai.choice":
            inner = decode_json(values.get("message"))
            inner = inner.get("content") if isinstance(inner, Mapping) else inner
            content = content or inner or values.get("message.content")
        if not content:
            continue
        content_text = extract_text(decode_json(content)) or str(content)
        if name in ("gen_ai.choice", "gen_ai.content.completion"):
            completions.append({"role": ASSISTANT, "content": content_text})
        elif name == "gen_ai.content.prompt":
            prompts.append({"role": USER, "content": extract_question(content) or ""})
        elif (role := name.removeprefix("gen_ai.").removesuffix(".message")) in ROLE_SYNONYMS:
            prompts.append({"role": role, "content": content_text})
    return prompts, completions
