"""Records of an export to spans, by a table of where a tool has what."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragassay.jobs.input.documents import Document, extract_text, find_documents, parse_json_if_possible, replace_surrogates
from ragassay.jobs.input.messages import ASSISTANT, ROLE_SYNONYMS, USER
from ragassay.jobs.integrations.traces.content import question_of, response_of
from ragassay.jobs.integrations.traces.fields import (
    EMPTY,
    attributes_of,
    by_name,
    first,
    list_of,
    listed,
    micros,
    object_of,
    span_id,
    text,
    unquoted,
    within_years,
)
from ragassay.jobs.integrations.traces.spans import RETRIEVALS, Kind, Span

_SYNONYMS = {
    Kind.RETRIEVER: "retriever retrieval",
    Kind.RERANKER: "reranker rerank",
    Kind.GENERATION: "llm chat_model generation chat completion text_completion generate_content",
    Kind.EMBEDDING: "embedding embeddings",
    Kind.TOOL: "tool execute_tool",
    Kind.EVALUATOR: "evaluator guardrail evaluation",
}
KINDS = {synonym: kind for kind, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
"""What tools call a kind of span, in small letters; what stands for none of these is `other`."""

_RETRIEVES = re.compile(r"\bretriev(e|er|al|ers)\b")
_RERANKS = re.compile(r"\bre ?rank(er|ing)?\b")


@dataclass(frozen=True)
class Places:
    """Where a span, or a trace as a whole, has what: names, of which the first that holds something counts.

    They are `plain_name`s of fields; from `kind` on they name attributes, as they are, where the tool has attributes.

    Attributes:
        objects: Name -> the fields that may hold this object: its own fields are `name.…` then, or of the record, for no name.
        needs: One of these is there; else the record is something else.
        lacks: None of these is there.
        trace_id: As `Span` has it, like all that is not said here.
        root: Whether it is a root.
        root_name: The name of a root, before `name`.
        duration: Nanoseconds, where no end is told.
        status: Tells whether it failed, by the word error or OpenTelemetry's code.
        error: Is there where it failed.
        phase: Tells that it has ended, where no end is told.
        ended: Those of its phases.
        events: Messages, as earlier conventions told them.
        prompt: The messages that a generation was asked; before `question` for a generation, and else behind it.
        query: Where nothing else asks.
        completion: The messages that a generation said, likewise.
        documents: What was retrieved, where it isn't the response.
    """

    objects: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""
    lacks: str = ""
    trace_id: str = "traceid"
    span_id: str = ""
    parent_id: str = ""
    root: str = ""
    root_name: str = ""
    name: str = "name"
    start: str = "starttime"
    end: str = "endtime"
    duration: str = ""
    status: str = ""
    error: str = ""
    phase: str = ""
    ended: str = ""
    events: str = ""
    kind: str = ""
    question: str = ""
    prompt: str = ""
    query: str = ""
    response: str = ""
    completion: str = ""
    documents: str = ""
    session: str = "sessionid"
    user: str = "userid"
    model: str = ""


@dataclass(frozen=True)
class Tool:
    """How a tool exports.

    Attributes:
        span: Where a span has what.
        trace: Where a trace as a whole has what; None where no record tells.
        lists: A field of the record with a list, of its items likewise, down to the spans; none where records are spans.
        is_span: Whether a record without lists is a span.
        attributes: Fields with attributes, which may be JSON; none where all stands in fields.
        are_json: Whether each attribute by itself is JSON.
        beside: Field -> the attribute in whose place it stands.
        read_id: Reads the ids of spans.
        read_trace_id: Reads the ids of traces.
        root_is_trace: A root has the id of the trace.
    """

    span: Places
    trace: Places | None = None
    lists: tuple[str, ...] = ()
    is_span: bool = True
    attributes: str = ""
    are_json: bool = False
    beside: Mapping[str, str] = field(default_factory=dict)
    read_id: Callable[[Any], str | None] = span_id
    read_trace_id: Callable[[Any], str | None] = text
    root_is_trace: bool = False

    def value(self, values: Mapping[str, Any], names: str) -> Any:
        """A value among fields or attributes."""
        found = first(values, names)
        return unquoted(found) if self.attributes else found

    def content(self, values: Mapping[str, Any], names: str) -> Any:
        """A value that may be a list or an object; of attributes, one that was flattened too."""
        if not self.attributes:
            return first(values, names)
        return next((found for name in names.split() if (found := listed(values, name)) not in EMPTY), None)


def spans_of(tool: Tool, record: Mapping[str, Any]) -> Iterator[Span]:
    """What a record says of a trace as a whole, and the spans that it holds; nothing where it is something else, as a score."""
    fields = _fields(record, tool.trace.objects if tool.trace else {})
    items: list[Any] = [record]
    if tool.lists and not (tool.is_span and first(fields, tool.lists[0]) is None):
        items = [fields]
        for names in tool.lists:
            items = [object_of(item) for one in items for item in list_of(first(by_name(one), names))]
    trace_id = tool.read_trace_id(first(fields, tool.trace.trace_id)) if tool.trace else None
    spans = [found for item in items if (found := _span(tool, item, trace_id if tool.lists else None))]
    if tool.trace and (trace_id := trace_id or next((span.trace_id for span in spans), None)):
        is_whole = first(fields, tool.trace.needs) is not None or (spans and tool.lists)
        if is_whole and first(fields, tool.trace.lacks) is None:
            yield _trace(tool, tool.trace, fields, trace_id, has_spans=bool(spans))
    yield from spans


def _fields(record: Mapping[str, Any], objects: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a record by their plain names, those of its objects among them."""
    found = by_name(record)
    for name, places in objects.items():
        inner = next((held for place in places.split() if (held := object_of(found.get(place)))), {})
        for below, value in by_name(inner).items():
            found.setdefault(f"{name}.{below}" if name else below, value)
    return found


def _trace(tool: Tool, places: Places, fields: Mapping[str, Any], trace_id: str, *, has_spans: bool) -> Span:
    """What is said of a trace; where its spans tell of it, its texts may be cut off."""
    return Span(
        trace_id,
        trace_id,
        kind=Kind.TRACE,
        name=text(first(fields, places.name)),
        question=None if has_spans else question_of(tool.content(fields, places.question)),
        response=None if has_spans else response_of(tool.content(fields, places.response)),
        session=text(first(fields, places.session)),
        user=text(first(fields, places.user)),
        **_course(places, fields),
    )


def _span(tool: Tool, record: Mapping[str, Any], trace_id: str | None) -> Span | None:
    places = tool.span
    fields = _fields(record, places.objects)
    values = _values(tool, record, fields)
    own, parent = (tool.read_id(first(fields, names)) for names in (places.span_id, places.parent_id))
    trace_id = trace_id or tool.read_trace_id(first(fields, places.trace_id) or tool.value(values, places.trace_id))
    is_other = (places.needs and first(fields, places.needs) is None) or first(fields, places.lacks) is not None
    if own is None or trace_id is None or is_other:
        return None
    name = text(first(fields, places.name))
    kind, documents = _kind_and_documents(tool, values, name)
    asked, said = (
        tool.content(values, f"{messages} {value}" if kind is Kind.GENERATION else f"{value} {messages}")
        for value, messages in ((places.question, places.prompt), (places.response, places.completion))
    )
    if tool.attributes:
        by_events = _event_messages(first(fields, places.events))
        asked = _messages(by_events[0] or first(values, places.query) if asked is None else asked)
        said = _messages(by_events[1] if said is None else said)
    return Span(
        trace_id,
        own,
        parent_id=parent,
        root=parse_json_if_possible(first(fields, places.root)) in (True, "true")
        or (tool.root_is_trace and not parent and own == trace_id),
        kind=kind,
        name=name if parent else text(first(fields, f"{places.root_name} {places.name}")),
        question=question_of(asked),
        response=response_of(said),
        documents=documents,
        session=text(tool.value(values, places.session)),
        user=text(tool.value(values, places.user)),
        model=text(tool.value(values, places.model)),
        **_course(places, fields),
    )


def _values(tool: Tool, record: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where a span's kind and content stand: among its attributes, or its fields."""
    if not tool.attributes:
        return fields
    found = attributes_of(record, tool.attributes)
    found = {name: unquoted(value) for name, value in found.items()} if tool.are_json else found
    for name, attribute in tool.beside.items():
        if str(fields.get(name) or "UNKNOWN").upper() != "UNKNOWN":
            found.setdefault(attribute, fields[name])
    return found


def _course(places: Places, fields: Mapping[str, Any]) -> dict[str, Any]:
    """When a span began and ended, and whether it failed."""
    start, end = micros(first(fields, places.start)), micros(first(fields, places.end))
    duration = first(fields, places.duration)
    if end is None and start is not None and duration is not None:
        end = within_years(start + int(duration) // 1000)
    if end is None and str(first(fields, places.phase)).upper().rpartition(".")[2] in places.ended.split():
        end = start
    status = str(first(fields, places.status)).upper()
    failed = status.endswith("ERROR") or status == "2" or bool(first(fields, places.error))
    return {"start": start, "end": end, "failed": failed}


def _kind_and_documents(tool: Tool, values: Mapping[str, Any], name: str | None) -> tuple[Kind, tuple[Document, ...] | None]:
    """What a span is, and the documents that it has retrieved.

    What the tool calls it counts first; a chain, a tool or a span without a kind is a retrieval if its name says so and what it
    puts out is documents.
    """
    places = tool.span
    kind = KINDS.get(str(tool.value(values, places.kind) or "").lower(), Kind.OTHER)
    if kind not in (*RETRIEVALS, Kind.OTHER, Kind.TOOL):
        return kind, None

    def output() -> Any:
        """What the span puts out: long JSON, which is parsed only where it is needed."""
        return unquoted(tool.content(values, places.response))

    fields = places.documents.split()
    documents = next((found for field in fields if (found := find_documents(tool.content(values, field)))), None)
    words = re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name or "").lower())
    is_reranker = _RERANKS.search(words) is not None
    named = Kind.RERANKER if kind is Kind.RERANKER or is_reranker else Kind.RETRIEVER  # some know retrievals alone
    if kind in RETRIEVALS:
        return named, tuple(documents) if documents else _put_out(output())
    documents = documents or (find_documents(output()) if is_reranker or _RETRIEVES.search(words) else None)
    return (named, tuple(documents)) if documents else (kind, None)


def _put_out(output: Any) -> tuple[Document, ...] | None:
    """The documents in the output of a retrieval; one of text is a document, None says that there is no output."""
    if isinstance(output, str) and output.strip():
        return (Document(replace_surrogates(output)),)
    return None if output in (None, "") else tuple(find_documents(output) or ())


def _messages(value: Any) -> Any:
    """Messages whose fields have names such as `message.role`, as messages."""
    value = unquoted(value)
    if not isinstance(value, list):
        return value
    return [_message(item) if isinstance(item, Mapping) else item for item in value]


def _message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of OpenInference or of OpenLLMetry, or one with parts of OpenTelemetry's, as a plain one."""
    inner = item.get("message")
    fields = _without("message.", inner if isinstance(inner, Mapping) and "role" not in item else item)
    contents = listed(fields, "contents")
    if fields.get("content") is None and contents:
        held = [(part, part.get("message_content")) for part in contents if isinstance(part, Mapping)]
        fields["content"] = [_without("message_content.", inner if isinstance(inner, Mapping) else one) for one, inner in held]
    if isinstance(fields.get("parts"), list) and "content" not in fields:
        fields["content"] = [part for part in fields.pop("parts") if isinstance(part, Mapping)]
    return fields if "role" in fields else item


def _without(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).removeprefix(prefix): value for name, value in fields.items()}


def _event_messages(events: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was asked and said by events: `gen_ai.user.message`, `gen_ai.choice`, `gen_ai.content.prompt`."""
    asked: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for event in map(object_of, list_of(events)):
        name = str(by_name(event).get("name") or "")
        values = attributes_of({str(key).lower(): value for key, value in event.items()}, "attributes")
        content = first(values, "content gen_ai.prompt gen_ai.completion")
        if name == "gen_ai.choice":
            inner = unquoted(values.get("message"))
            inner = inner.get("content") if isinstance(inner, Mapping) else inner
            content = content or inner or values.get("message.content")
        if not content:
            continue
        content_text = extract_text(unquoted(content)) or str(content)
        if name in ("gen_ai.choice", "gen_ai.content.completion"):
            said.append({"role": ASSISTANT, "content": content_text})
        elif name == "gen_ai.content.prompt":
            asked.append({"role": USER, "content": question_of(content) or ""})
        elif (role := name.removeprefix("gen_ai.").removesuffix(".message")) in ROLE_SYNONYMS:
            asked.append({"role": role, "content": content_text})
    return asked, said
