"""The presets: for each tool, the fields of its export. To add a tool, add an `ExportPreset` to `PRESETS`, or as a plug-in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ragassay.jobs.integrations.traces.fields import (
    EMPTY,
    decode_json,
    first_value,
    parse_hex_id,
    parse_span_id,
    to_text,
    unflatten,
)
from ragassay.pipeline.plugins import TRACES, load_plugin


@dataclass(frozen=True)
class FieldNames:
    """Names of the fields of a span or of a trace; the first that has a value is used.

    Names are spelled as `normalize_names` returns them. For a tool with attributes, the names from `kind` on are exact
    attribute names.

    Attributes:
        objects: Prefix -> fields that can contain a nested object. Its fields become `prefix.…`, or top-level without a prefix.
        requires_any: At least one of these fields must exist, otherwise the record is something else.
        excludes: None of these fields may exist.
        trace_id: As in `Span`, like all attributes not listed here.
        root: Whether the span is a root.
        root_name: Name of a root, before `name`.
        duration: Nanoseconds, if there is no end.
        status: Failed if it ends with "error" or is OpenTelemetry's code 2.
        error: Exists if the span failed.
        phase: State of the span, if there is no end.
        ended_phases: Values of `phase` that mean that the span has ended.
        events: Messages as events (earlier conventions).
        prompt: Input messages of a generation; read before `question` for a generation, after it for other spans.
        query: Question if nothing else has one.
        completion: Output messages of a generation; like `prompt`.
        documents: Retrieved documents, if they are not the response.
    """

    objects: Mapping[str, str] = field(default_factory=dict)
    requires_any: str = ""
    excludes: str = ""
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
    ended_phases: str = ""
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
class ExportPreset:
    """Export format of a tool.

    Attributes:
        span: Fields of a span.
        trace: Fields of a trace; None if no record describes a whole trace.
        lists: Path of list fields from the record to its spans; empty if records are spans.
        is_span: Whether a record without these lists is a span.
        attributes: Fields with attributes; empty if all values are plain fields.
        has_json_attributes: Whether each attribute is JSON.
        attribute_fields: Field -> the attribute that it replaces.
        read_span_id: Reads ids of spans.
        read_trace_id: Reads ids of traces.
        root_has_trace_id: Whether the id of a root span is the id of its trace.
    """

    span: FieldNames
    trace: FieldNames | None = None
    lists: tuple[str, ...] = ()
    is_span: bool = True
    attributes: str = ""
    has_json_attributes: bool = False
    attribute_fields: Mapping[str, str] = field(default_factory=dict)
    read_span_id: Callable[[Any], str | None] = parse_span_id
    read_trace_id: Callable[[Any], str | None] = to_text
    root_has_trace_id: bool = False

    def read_value(self, values: Mapping[str, Any], names: str) -> Any:
        """Return the first value among fields or attributes."""
        value = first_value(values, names)
        return decode_json(value) if self.attributes else value

    def read_content(self, values: Mapping[str, Any], names: str) -> Any:
        """Return the first value that can be a list or an object, also if attributes are flattened."""
        if not self.attributes:
            return first_value(values, names)
        return next((value for name in names.split() if (value := unflatten(values, name)) not in EMPTY), None)


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

PRESETS = {"langfuse": LANGFUSE, "langsmith": LANGSMITH, "phoenix": PHOENIX, "mlflow": MLFLOW, "otel": OTEL}


def find_preset(name: str) -> ExportPreset:
    """Find a preset by its name, which the job file has checked.

    Raises:
        ConfigError: It is a plug-in that can't be loaded.
    """
    preset: ExportPreset = PRESETS.get(name) or load_plugin(
        TRACES, name, lambda plugin: isinstance(plugin, ExportPreset), "an ExportPreset"
    )
    return preset
