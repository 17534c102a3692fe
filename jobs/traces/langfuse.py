"""Langfuse: the scheduled export to blob storage, `observations_v2/` or `observations/` with `traces/`."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragassay.jobs.input.documents import lenient
from ragassay.jobs.traces.attributes import kind_and_documents
from ragassay.jobs.traces.content import question_of, response_of
from ragassay.jobs.traces.fields import by_name, first, micros, span_id, text
from ragassay.jobs.traces.spans import Kind, Span


def spans(record: Mapping[str, Any]) -> Iterator[Span]:
    """The span of an observation, or what a trace's own record says of it; nothing for a score or a manifest."""
    fields = by_name(record)
    if "datatype" in fields or "observationid" in fields:  # a score
        return
    trace_id, own = text(fields.get("traceid")), span_id(fields.get("id"))
    if trace_id is None and own is not None and "timestamp" in fields:
        yield _trace(fields, own)
    elif trace_id is not None and own is not None and "type" in fields:
        yield _observation(fields, trace_id, own)


def _trace(fields: Mapping[str, Any], trace_id: str) -> Span:
    return Span(
        trace_id,
        trace_id,
        kind=Kind.TRACE,
        name=text(fields.get("name")),
        start=micros(fields["timestamp"]),
        question=question_of(fields.get("input")),
        response=response_of(fields.get("output")),
        session=text(fields.get("sessionid")),
        user=text(fields.get("userid")),
    )


def _observation(fields: Mapping[str, Any], trace_id: str, own: str) -> Span:
    name = text(fields.get("name"))
    said = fields["type"]
    kind, documents = kind_and_documents(said, name, fields.get("output"))
    start = micros(fields.get("starttime"))
    is_event = str(said).upper() == "EVENT"  # a moment, which never ends
    return Span(
        trace_id,
        own,
        parent_id=span_id(fields.get("parentobservationid")),
        root=lenient(fields.get("isrootobservation")) in (True, 1, "true"),
        kind=kind,
        name=text(first(fields, "tracename", "name")) if not span_id(fields.get("parentobservationid")) else name,
        start=start,
        end=micros(fields.get("endtime")) or (start if is_event else None),
        failed=str(fields.get("level")).upper() == "ERROR",
        question=question_of(fields.get("input")),
        response=response_of(fields.get("output")),
        documents=documents,
        session=text(fields.get("sessionid")),
        user=text(fields.get("userid")),
        model=text(first(fields, "providedmodelname", "model")),
    )
