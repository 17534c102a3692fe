"""The event `gen_ai.evaluation.result` of OpenTelemetry, as log records over OTLP/HTTP in JSON.

A collector takes every record as a new one: `log.record.uid` is the same for the same verdict, so that whoever stores them can
tell.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Answer, Connection, Http, words
from ragassay.jobs.integrations.publish.target import SENT, Fate, Outcome, Sending, Target, address, elsewhere, key, send_batch
from ragassay.jobs.integrations.publish.verdict import Verdict
from ragassay.pipeline.errors import ConfigError

BATCH = 200
EVENT = "gen_ai.evaluation.result"
INFO = 9  # severity
TRACE, SPAN = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
KEYS = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")


def connect(url: str | None) -> Connection:
    """Where the collector is: OTEL_EXPORTER_OTLP_LOGS_ENDPOINT whole, or OTEL_EXPORTER_OTLP_ENDPOINT and /v1/logs."""
    whole = None if url else key("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
    where = address(whole or url, ("OTEL_EXPORTER_OTLP_ENDPOINT",), "http://localhost:4318")
    if not whole and not where.endswith("/v1/logs"):
        where += "/v1/logs"
    return Connection(where, _headers(next(filter(None, map(key, KEYS)), "")), KEYS[1])


def _headers(text: str) -> dict[str, str]:
    """`name=value,name=value`, values with % escapes."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(sign and name.strip() for name, sign, _ in pairs):
        raise ConfigError(errors.HEADERS_SYNTAX, variable=KEYS[1])
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def record(verdict: Verdict, sending: Sending) -> dict[str, Any]:
    """A log record: in the context of its trace and span where the ids are those of OpenTelemetry."""
    trace, span = verdict.trace_id.removeprefix("tr-").lower(), (verdict.span_id or "").lower()
    context = {"traceId": trace} if TRACE.fullmatch(trace) else {}
    if context and SPAN.fullmatch(span):
        context["spanId"] = span
    said: dict[str, Any] = {
        "gen_ai.evaluation.name": sending.name,
        "gen_ai.evaluation.score.value": verdict.score,
        "gen_ai.evaluation.score.label": verdict.label,
        "gen_ai.evaluation.explanation": verdict.explanation,
        "gen_ai.response.id": None if "spanId" in context else verdict.row_id,
        "ragassay.probability": verdict.probability,
        **{f"ragassay.{name}": value for name, value in verdict.facts.items()},
    }
    said = {name: value for name, value in said.items() if value is not None}
    what = json.dumps([verdict.id_of("otel", sending.name), said, context])
    uid = hashlib.blake2b(what.encode(), digest_size=16).hexdigest()
    return {
        "timeUnixNano": _nanoseconds(sending.at.timestamp()),
        "observedTimeUnixNano": _nanoseconds(sending.moment.timestamp()),
        "severityNumber": INFO,
        "severityText": "INFO",
        "eventName": EVENT,
        **context,
        "attributes": [{"key": name, "value": _value(value)} for name, value in {"log.record.uid": uid, **said}.items()],
    }


def _nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e6) * 1000)


def _value(value: Any) -> dict[str, Any]:
    """A value as OTLP's JSON has it: 64-bit integers as strings."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": _value(v)} for k, v in value.items() if v is not None]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _body(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "ragassay"}}]}
    return {
        "resourceLogs": [{"resource": service, "scopeLogs": [{"scope": {"name": "ragassay"}, "logRecords": list(records)}]}]
    }


def send(http: Http, verdicts: Sequence[Verdict], sending: Sending) -> list[Outcome]:
    """Send verdicts; a collector that refuses some of a batch says how many, and must not be sent them again."""

    def post(some: Sequence[Verdict]) -> Answer:
        return http.once("POST", "", _body([record(verdict, sending) for verdict in some]))

    def read(answer: Answer, some: Sequence[Verdict]) -> list[Outcome] | None:
        if answer.status in {404, 405}:
            raise elsewhere(http, answer)
        if not answer.ok:
            return None
        partial = answer.body.get("partialSuccess") or {} if isinstance(answer.body, dict) else {}
        count = min(int(partial.get("rejectedLogRecords") or 0), len(some))
        refused = Outcome(Fate.REFUSED, hide_secrets(words(partial.get("errorMessage")))[:300], named=count == len(some))
        return [SENT] * (len(some) - count) + [refused] * count

    return send_batch(http, verdicts, post, read)


OTEL = Target(
    "otel", BATCH, False, ("generation_span_id", "span_id"), connect, lambda v, sending: _body([record(v, sending)]), send
)
