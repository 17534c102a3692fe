"""Phoenix: a data frame of spans written as Parquet, or spans as JSON Lines."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragassay.jobs.traces.attributes import with_meaning
from ragassay.jobs.traces.fields import attributes_of, by_name, first, micros, span_id, text
from ragassay.jobs.traces.spans import Span


def spans(record: Mapping[str, Any]) -> Iterator[Span]:
    """The span of a row; a row of annotations or of anything else is none."""
    context = record.get("context")
    fields = by_name(record)
    if isinstance(context, Mapping):
        fields = {**fields, **{f"context.{name}": value for name, value in by_name(context).items()}}
    own = span_id(first(fields, "context.spanid", "spanid", "indexlevel0"))
    trace_id = text(first(fields, "context.traceid", "traceid"))
    if own is None or trace_id is None:
        return
    attributes = attributes_of(record, "attributes")
    said = fields.get("spankind")
    if said and str(said).upper() != "UNKNOWN":
        attributes.setdefault("openinference.span.kind", said)
    yield with_meaning(
        Span(
            trace_id,
            own,
            parent_id=span_id(first(fields, "parentid", "parentspanid")),
            name=text(fields.get("name")),
            start=micros(fields.get("starttime")),
            end=micros(fields.get("endtime")),
            failed=str(fields.get("statuscode")).upper() == "ERROR",
        ),
        attributes,
    )
