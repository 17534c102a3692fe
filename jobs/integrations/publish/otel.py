"""OpenTelemetry: the event `gen_ai.evaluation.result` as log records, OTLP/HTTP in JSON.

A collector treats every record as new. `log.record.uid` is equal for equal verdicts, so that the storage can remove duplicates.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Connection, ToolClient, ToolReply, describe_body
from ragassay.jobs.integrations.publish.target import (
    SENT,
    Delivery,
    DeliveryStatus,
    PublishTarget,
    SendOptions,
    make_no_api_error,
    read_key,
    resolve_url,
    send_batch,
)
from ragassay.jobs.integrations.publish.verdict import TraceVerdict
from ragassay.pipeline.errors import ConfigError

BATCH = 200
EVENT = "gen_ai.evaluation.result"
INFO = 9  # severity number
TRACE, SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
KEYS = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")


def connect(url: str | None) -> Connection:
    """Connect to a collector: OTEL_EXPORTER_OTLP_LOGS_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT with /v1/logs."""
    logs_url = None if url else read_key("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
    address = resolve_url(logs_url or url, ("OTEL_EXPORTER_OTLP_ENDPOINT",), "http://localhost:4318")
    if not logs_url and not address.endswith("/v1/logs"):
        address += "/v1/logs"
    return Connection(address, _parse_headers(next(filter(None, map(read_key, KEYS)), "")), KEYS[1])


def _parse_headers(text: str) -> dict[str, str]:
    """Parse `name=value,name=value` with % escapes."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(sign and name.strip() for name, sign, _ in pairs):
        raise ConfigError(errors.HEADERS_SYNTAX, variable=KEYS[1])
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def build_record(verdict: TraceVerdict, options: SendOptions) -> dict[str, Any]:
    """Return a log record, in the context of its trace and span if the ids are OpenTelemetry's."""
    trace, span = verdict.trace_id.removeprefix("tr-").lower(), (verdict.span_id or "").lower()
    context = {"traceId": trace} if TRACE.fullmatch(trace) else {}
    if context and SPAN.fullmatch(span):
        context["spanId"] = span
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": options.score_name,
        "gen_ai.evaluation.score.value": verdict.score,
        "gen_ai.evaluation.score.label": verdict.label,
        "gen_ai.evaluation.explanation": verdict.explanation,
        "gen_ai.response.id": None if "spanId" in context else verdict.row_id,
        "ragassay.probability": verdict.probability,
        **{f"ragassay.{name}": value for name, value in verdict.facts.items()},
    }
    attributes = {name: value for name, value in attributes.items() if value is not None}
    identity = json.dumps([verdict.stable_id("otel", options.score_name), attributes, context])
    uid = hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
    return {
        "timeUnixNano": _to_nanoseconds(options.verdict_time.timestamp()),
        "observedTimeUnixNano": _to_nanoseconds(options.send_time.timestamp()),
        "severityNumber": INFO,
        "severityText": "INFO",
        "eventName": EVENT,
        **context,
        "attributes": [
            {"key": name, "value": _to_otlp_value(value)} for name, value in {"log.record.uid": uid, **attributes}.items()
        ],
    }


def _to_nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e6) * 1000)


def _to_otlp_value(value: Any) -> dict[str, Any]:
    """Return a value as OTLP JSON: integers are strings."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": _to_otlp_value(v)} for k, v in value.items() if v is not None]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_to_otlp_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _build_body(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "ragassay"}}]}
    return {
        "resourceLogs": [{"resource": service, "scopeLogs": [{"scope": {"name": "ragassay"}, "logRecords": list(records)}]}]
    }


def send(client: ToolClient, verdicts: Sequence[TraceVerdict], options: SendOptions) -> list[Delivery]:
    """Send verdicts. A collector that refuses a part of a batch only gives the number, and must not receive the batch again."""

    def post(part: Sequence[TraceVerdict]) -> ToolReply:
        return client.request("POST", "", _build_body([build_record(verdict, options) for verdict in part]))

    def read(reply: ToolReply, part: Sequence[TraceVerdict]) -> list[Delivery] | None:
        if reply.status in {404, 405}:
            raise make_no_api_error(client, reply)
        if not reply.is_ok:
            return None
        partial = reply.body.get("partialSuccess") or {} if isinstance(reply.body, dict) else {}
        count = min(int(partial.get("rejectedLogRecords") or 0), len(part))
        refused = Delivery(
            DeliveryStatus.REFUSED,
            hide_secrets(describe_body(partial.get("errorMessage")))[:300],
            is_named=count == len(part),
        )
        return [SENT] * (len(part) - count) + [refused] * count

    return send_batch(client, verdicts, post, read)


OTEL = PublishTarget(
    "otel",
    BATCH,
    False,
    ("generation_span_id", "span_id"),
    connect,
    lambda v, sending: _build_body([build_record(v, sending)]),
    send,
)
