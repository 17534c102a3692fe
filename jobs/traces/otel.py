"""OpenTelemetry: OTLP as JSON, a request a line, or spans as rows of Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragassay.jobs.input.documents import lenient
from ragassay.jobs.traces.attributes import with_meaning
from ragassay.jobs.traces.fields import attributes_of, by_name, first, hexadecimal, micros, text, within_years
from ragassay.jobs.traces.spans import Span

_FAILED = ("ERROR", "STATUS_CODE_ERROR", "2")


def spans(record: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of a request, or the span of a row."""
    fields = by_name(record)
    resources = first(fields, "resourcespans")
    if resources is None:
        yield from _span(record)
        return
    for resource in _list(resources):
        groups = by_name(resource)
        for scope in _list(first(groups, "scopespans", "instrumentationlibraryspans")):
            for span in _list(by_name(scope).get("spans")):
                yield from _span(span)


def _span(record: Mapping[str, Any]) -> Iterator[Span]:
    fields = by_name(record)
    own, trace_id = hexadecimal(fields.get("spanid")), hexadecimal(fields.get("traceid"))
    if own is None or trace_id is None:
        return
    start = micros(first(fields, "starttimeunixnano", "starttime", "timestamp"))
    end = micros(first(fields, "endtimeunixnano", "endtime"))
    if end is None and start is not None and fields.get("duration") is not None:  # nanoseconds, as exporters to tables write it
        end = within_years(start + int(fields["duration"]) // 1000)
    yield with_meaning(
        Span(
            trace_id,
            own,
            parent_id=hexadecimal(fields.get("parentspanid")),
            name=text(first(fields, "name", "spanname")),
            start=start,
            end=end,
            failed=_status(fields) in _FAILED,
        ),
        attributes_of(record, "attributes", "span_attributes", "SpanAttributes", "spanAttributes"),
        events_of(fields.get("events")),
    )


def events_of(value: Any) -> list[dict[str, Any]]:
    """Events of a span: their names and attributes."""
    found = []
    for event in _list(value):
        fields = by_name(event)
        plainly = {str(name).lower(): inner for name, inner in event.items()}
        found.append({"name": str(fields.get("name") or ""), "attributes": attributes_of(plainly, "attributes")})
    return found


def _status(fields: Mapping[str, Any]) -> str:
    status = lenient(fields.get("status"))
    code = by_name(status).get("code") if isinstance(status, Mapping) else first(fields, "statuscode", "status.code", "status")
    return str(code).upper()


def _list(value: Any) -> Sequence[Mapping[str, Any]]:
    found = lenient(value)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list | tuple) else []
