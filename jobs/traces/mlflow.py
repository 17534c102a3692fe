"""MLflow: what `search_traces` gives, as Parquet or JSON Lines; traces as JSON; or the spans alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragassay.jobs.input.documents import lenient
from ragassay.jobs.traces.attributes import with_meaning
from ragassay.jobs.traces.content import question_of, response_of
from ragassay.jobs.traces.fields import attributes_of, by_name, first, hexadecimal, micros, text, unquoted
from ragassay.jobs.traces.otel import events_of
from ragassay.jobs.traces.spans import Kind, Span

_ENDED = ("OK", "ERROR")


def spans(record: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of a trace, and what it says of itself; nothing for a record that is no trace."""
    whole = _object(first(record, "trace"))
    info, data = _object(whole.get("info") or record.get("info")), _object(whole.get("data") or record.get("data"))
    fields = {**by_name(info), **{name: value for name, value in by_name(record).items() if value is not None}}
    metadata = _object(first(fields, "tracemetadata", "requestmetadata"))
    found = [_object(span) for span in _list(first(record, "spans") or data.get("spans"))]
    trace_id = text(first(fields, "traceid", "requestid")) or _named(found)
    if trace_id is None:
        return
    state = str(first(fields, "state", "status") or "").upper().rpartition(".")[2]
    start = micros(first(fields, "requesttime", "timestampms"))
    mine = [span for one in found for span in _span(one, trace_id)]
    about = Span(
        trace_id,
        trace_id,
        kind=Kind.TRACE,
        name=text(_object(fields.get("tags")).get("mlflow.traceName")),
        start=start,
        end=start if state in _ENDED else None,
        failed=state == "ERROR",
        session=text(metadata.get("mlflow.trace.session")),
        user=text(metadata.get("mlflow.trace.user")),
    )
    if not mine:  # what stands beside the spans may be cut off
        asked, said = first(fields, "request", "requestpreview"), first(fields, "response", "responsepreview")
        about = replace(about, question=question_of(unquoted(asked)), response=response_of(unquoted(said)))
    if mine or "state" in fields or "status" in fields or "request" in fields:
        yield about
    yield from mine


def _span(record: Mapping[str, Any], trace_id: str) -> Iterator[Span]:
    context = _object(record.get("context"))
    fields = {**by_name(record), **by_name(context)}
    own = hexadecimal(fields.get("spanid"))
    if own is None:
        return
    status = lenient(fields.get("status"))
    code = by_name(status).get("code") if isinstance(status, Mapping) else first(fields, "statuscode", "status")
    attributes = {name: unquoted(value) for name, value in attributes_of(record, "attributes").items()}
    for name, place in (("inputs", "mlflow.spanInputs"), ("outputs", "mlflow.spanOutputs"), ("span_type", "mlflow.spanType")):
        if record.get(name) is not None:
            attributes.setdefault(place, record[name])
    yield with_meaning(
        Span(
            trace_id,
            own,
            parent_id=hexadecimal(first(fields, "parentspanid", "parentid")),
            name=text(fields.get("name")),
            start=micros(first(fields, "starttimeunixnano", "starttimens", "starttime")),
            end=micros(first(fields, "endtimeunixnano", "endtimens", "endtime")),
            failed=str(code).upper().endswith("ERROR"),
        ),
        attributes,
        events_of(record.get("events")),
    )


def _named(found: list[Mapping[str, Any]]) -> str | None:
    """The trace that its spans name."""
    names = (attributes_of(span, "attributes").get("mlflow.traceRequestId") for span in found)
    return next((text(unquoted(name)) for name in names if name), None)


def _list(value: Any) -> list[Any]:
    found = lenient(value)
    return list(found) if isinstance(found, list | tuple) else []


def _object(value: Any) -> Mapping[str, Any]:
    found = lenient(value)
    if isinstance(found, list) and found and all(isinstance(pair, tuple) for pair in found):
        return dict(found)
    return found if isinstance(found, Mapping) else {}
