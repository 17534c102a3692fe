"""The presets: for each tool, the fields of its export. To add a tool, add an `ExportPreset` to `PRESETS`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ragassay.jobs.integrations.traces.fields import parse_hex_id
from ragassay.jobs.integrations.traces.read import ExportPreset, FieldNames, read_spans
from ragassay.jobs.integrations.traces.spans import Span

_CONVENTIONS = FieldNames(
    kind="openinference.span.kind gen_ai.operation.name mlflow.spanType traceloop.span.kind llm.request.type",
    question="gen_ai.input.messages input.value mlflow.spanInputs traceloop.entity.input gen_ai.tool.call.arguments",
    prompt="llm.input_messages gen_ai.prompt",
    query="gen_ai.retrieval.query.text",
    response="gen_ai.output.messages output.value mlflow.spanOutputs traceloop.entity.output gen_ai.tool.call.result",
    completion="llm.output_messages gen_ai.completion",
    documents="reranker.output_documents retrieval.documents gen_ai.retrieval.documents",
    session="session.id gen_ai.conversation.id langfuse.session.id thread.id mlflow.trace.session",
    user="user.id enduser.id langfuse.user.id mlflow.trace.user",
    model="gen_ai.response.model gen_ai.request.model llm.model_name embedding.model_name mlflow.chat.model",
)
"""Attribute names of OpenInference, OpenTelemetry GenAI, MLflow and OpenLLMetry."""

LANGFUSE = ExportPreset(  # scheduled export to blob storage: `observations_v2/`, or `observations/` and `traces/`
    span=FieldNames(
        requires_any="type", excludes="datatype observationid",  # scores have these fields
        span_id="id", parent_id="parentobservationid", root="isrootobservation", root_name="tracename",
        status="level", phase="type", ended_phases="EVENT",  # an event has no duration
        kind="type", question="input", response="output", model="providedmodelname model",
    ),
    trace=FieldNames(
        requires_any="timestamp", excludes="datatype observationid traceid",
        trace_id="id", start="timestamp", end="", question="input", response="output",
    ),
)  # fmt: skip

LANGSMITH = ExportPreset(  # bulk export of runs as Parquet, or runs as JSON Lines
    span=FieldNames(
        objects={"extra": "extra", "metadata": "metadata extra.metadata", "parameters": "extra.invocationparams"},
        span_id="id", parent_id="parentrunid", status="status", error="error",
        kind="runtype", question="inputs", response="outputs",
        session="metadata.sessionid metadata.threadid metadata.conversationid",
        user="metadata.userid metadata.user",
        model="metadata.lsmodelname metadata.modelname parameters.model parameters.modelname",
    ),
    root_has_trace_id=True,
)  # fmt: skip

PHOENIX = ExportPreset(  # data frame of spans as Parquet, or spans as JSON Lines
    span=replace(
        _CONVENTIONS,
        objects={"context": "context"},
        trace_id="context.traceid traceid",
        span_id="context.spanid spanid indexlevel0",
        parent_id="parentid parentspanid",
        status="statuscode",
    ),
    attributes="attributes",
    attribute_fields={"spankind": "openinference.span.kind"},
)

MLFLOW = ExportPreset(  # result of `search_traces` as Parquet or JSON Lines, or traces as JSON
    span=replace(
        _CONVENTIONS,
        objects={"": "context", "status": "status"},
        trace_id="mlflow.traceRequestId", span_id="spanid", parent_id="parentspanid parentid",
        start="starttimeunixnano starttimens starttime", end="endtimeunixnano endtimens endtime",
        status="status.code statuscode status",
        events="events",
    ),
    trace=FieldNames(
        objects={
            "trace": "trace", "": "trace.info info", "data": "trace.data data",
            "metadata": "tracemetadata requestmetadata", "tags": "tags",
        },
        requires_any="state status request",
        trace_id="traceid requestid", name="tags.mlflow.tracename", start="requesttime timestampms", end="",
        status="state status", phase="state status", ended_phases="OK ERROR",
        question="request requestpreview", response="response responsepreview",
        session="metadata.mlflow.trace.session", user="metadata.mlflow.trace.user",
    ),
    lists=("spans data.spans",),
    is_span=False,
    attributes="attributes",
    has_json_attributes=True,
    attribute_fields={"inputs": "mlflow.spanInputs", "outputs": "mlflow.spanOutputs", "spantype": "mlflow.spanType"},
    read_span_id=parse_hex_id,
)  # fmt: skip

OTEL = ExportPreset(  # OTLP as JSON, one request per line, or spans as Parquet rows
    span=replace(
        _CONVENTIONS,
        objects={"status": "status"},
        span_id="spanid", parent_id="parentspanid", name="name spanname",
        start="starttimeunixnano starttime timestamp", end="endtimeunixnano endtime", duration="duration",
        status="status.code statuscode status",
        events="events",
    ),
    lists=("resourcespans", "scopespans instrumentationlibraryspans", "spans"),
    attributes="attributes span_attributes SpanAttributes spanAttributes",
    read_span_id=parse_hex_id,
    read_trace_id=parse_hex_id,
)  # fmt: skip

PRESETS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Span]]] = {
    name: partial(read_spans, tool)
    for name, tool in {"langfuse": LANGFUSE, "langsmith": LANGSMITH, "phoenix": PHOENIX, "mlflow": MLFLOW, "otel": OTEL}.items()
}

RECORD_ERRORS = (ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError)
"""Exceptions of a record with a field of an unexpected type or value."""
