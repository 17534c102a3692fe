"""The tools whose exports are read: for each a table of where its records have what. A new one is a table more in `PRESETS`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ragassay.jobs.integrations.traces.fields import hexadecimal
from ragassay.jobs.integrations.traces.read import Places, Tool, spans_of
from ragassay.jobs.integrations.traces.spans import Span

_IN_ATTRIBUTES = Places(
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
"""The conventions of OpenInference, OpenTelemetry GenAI, MLflow and OpenLLMetry."""

LANGFUSE = Tool(  # the scheduled export to blob storage: `observations_v2/`, or `observations/` with `traces/`
    span=Places(
        needs="type", lacks="datatype observationid",  # scores have these
        span_id="id", parent_id="parentobservationid", root="isrootobservation", root_name="tracename",
        status="level", phase="type", ended="EVENT",  # a moment
        kind="type", question="input", response="output", model="providedmodelname model",
    ),
    trace=Places(
        needs="timestamp", lacks="datatype observationid traceid",
        trace_id="id", start="timestamp", end="", question="input", response="output",
    ),
)  # fmt: skip

LANGSMITH = Tool(  # the bulk export of runs as Parquet, or runs as JSON Lines
    span=Places(
        objects={"extra": "extra", "metadata": "metadata extra.metadata", "parameters": "extra.invocationparams"},
        span_id="id", parent_id="parentrunid", status="status", error="error",
        kind="runtype", question="inputs", response="outputs",
        session="metadata.sessionid metadata.threadid metadata.conversationid",
        user="metadata.userid metadata.user",
        model="metadata.lsmodelname metadata.modelname parameters.model parameters.modelname",
    ),
    root_is_trace=True,
)  # fmt: skip

PHOENIX = Tool(  # a data frame of spans written as Parquet, or spans as JSON Lines
    span=replace(
        _IN_ATTRIBUTES,
        objects={"context": "context"},
        trace_id="context.traceid traceid",
        span_id="context.spanid spanid indexlevel0",
        parent_id="parentid parentspanid",
        status="statuscode",
    ),
    attributes="attributes",
    beside={"spankind": "openinference.span.kind"},
)

MLFLOW = Tool(  # what `search_traces` gives, as Parquet or JSON Lines, or traces as JSON
    span=replace(
        _IN_ATTRIBUTES,
        objects={"": "context", "status": "status"},
        trace_id="mlflow.traceRequestId", span_id="spanid", parent_id="parentspanid parentid",
        start="starttimeunixnano starttimens starttime", end="endtimeunixnano endtimens endtime",
        status="status.code statuscode status",
        events="events",
    ),
    trace=Places(
        objects={
            "trace": "trace", "": "trace.info info", "data": "trace.data data",
            "metadata": "tracemetadata requestmetadata", "tags": "tags",
        },
        needs="state status request",
        trace_id="traceid requestid", name="tags.mlflow.tracename", start="requesttime timestampms", end="",
        status="state status", phase="state status", ended="OK ERROR",
        question="request requestpreview", response="response responsepreview",
        session="metadata.mlflow.trace.session", user="metadata.mlflow.trace.user",
    ),
    lists=("spans data.spans",),
    is_span=False,
    attributes="attributes",
    are_json=True,
    beside={"inputs": "mlflow.spanInputs", "outputs": "mlflow.spanOutputs", "spantype": "mlflow.spanType"},
    read_id=hexadecimal,
)  # fmt: skip

OTEL = Tool(  # OTLP as JSON, a request a line, or spans as rows of Parquet
    span=replace(
        _IN_ATTRIBUTES,
        objects={"status": "status"},
        span_id="spanid", parent_id="parentspanid", name="name spanname",
        start="starttimeunixnano starttime timestamp", end="endtimeunixnano endtime", duration="duration",
        status="status.code statuscode status",
        events="events",
    ),
    lists=("resourcespans", "scopespans instrumentationlibraryspans", "spans"),
    attributes="attributes span_attributes SpanAttributes spanAttributes",
    read_id=hexadecimal,
    read_trace_id=hexadecimal,
)  # fmt: skip

PRESETS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Span]]] = {
    name: partial(spans_of, tool)
    for name, tool in {"langfuse": LANGFUSE, "langsmith": LANGSMITH, "phoenix": PHOENIX, "mlflow": MLFLOW, "otel": OTEL}.items()
}

ODD = (ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError)
"""What reading a record raises where a field of it is not what it should be."""
