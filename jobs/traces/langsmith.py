"""LangSmith: the bulk export of runs as Parquet, or runs as JSON Lines."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragassay.jobs.input.documents import lenient
from ragassay.jobs.traces.attributes import kind_and_documents
from ragassay.jobs.traces.content import question_of, response_of
from ragassay.jobs.traces.fields import by_name, first, micros, span_id, text
from ragassay.jobs.traces.spans import Span


def spans(record: Mapping[str, Any]) -> Iterator[Span]:
    """The span of a run."""
    fields = by_name(record)
    own, trace_id = span_id(fields.get("id")), text(fields.get("traceid"))
    if own is None or trace_id is None:
        return
    name = text(fields.get("name"))
    kind, documents = kind_and_documents(fields.get("runtype"), name, fields.get("outputs"))
    extra = _object(fields.get("extra"))
    metadata = _object(fields.get("metadata")) or _object(extra.get("metadata"))
    known = by_name(metadata)
    parameters = by_name(_object(extra.get("invocation_params")))
    parent = span_id(fields.get("parentrunid"))
    yield Span(
        trace_id,
        own,
        parent_id=parent,
        root=parent is None and own == trace_id,
        kind=kind,
        name=name,
        start=micros(fields.get("starttime")),
        end=micros(fields.get("endtime")),
        failed=fields.get("status") == "error" or bool(fields.get("error")),
        question=question_of(fields.get("inputs")),
        response=response_of(fields.get("outputs")),
        documents=documents,
        session=text(first(known, "sessionid", "threadid", "conversationid")),
        user=text(first(known, "userid", "user")),
        model=text(first(known, "lsmodelname", "modelname") or first(parameters, "model", "modelname")),
    )


def _object(value: Any) -> Mapping[str, Any]:
    found = lenient(value)
    if isinstance(found, list) and all(isinstance(pair, tuple) for pair in found):
        return dict(found)
    return found if isinstance(found, Mapping) else {}
