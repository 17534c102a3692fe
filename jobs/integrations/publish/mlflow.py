"""MLflow: feedback on its traces, as assessments with the verdict.

MLflow creates the ids of assessments, so our id is in their metadata. Each trace is read first; our assessment is updated if
it exists, otherwise created.
"""

import base64
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from ragassay.jobs.integrations.publish.http import Connection, ToolClient, ToolReply
from ragassay.jobs.integrations.publish.target import (
    SENT,
    Delivery,
    DeliveryStatus,
    PublishTarget,
    SendOptions,
    drop_nulls,
    make_no_api_error,
    read_key,
    resolve_url,
)
from ragassay.jobs.integrations.publish.verdict import TraceVerdict

BATCH = 10
"""Verdicts per batch, with two sequential requests each."""

KEYS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
ID_KEY = "ragassay.id"
COMPARED_FIELDS = ("feedback", "rationale", "metadata")
OTEL_TRACE_ID = re.compile(r"[0-9a-f]{32}")
"""A trace id of OpenTelemetry; MLflow has it with the prefix `tr-`."""


def connect(url: str | None) -> Connection:
    """Connect to MLflow: MLFLOW_TRACKING_URI, with a token or user name and password if set."""
    address = resolve_url(url, ("MLFLOW_TRACKING_URI",))
    token, user, password = map(read_key, KEYS)
    if user and password:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        return Connection(address, {"Authorization": f"Basic {basic}"}, " and ".join(KEYS[1:]))
    return Connection(address, {"Authorization": f"Bearer {token}"} if token else {}, " or ".join(KEYS[:2]))


def build_assessment(verdict: TraceVerdict, options: SendOptions) -> dict[str, Any]:
    """Return the assessment of a trace, or of a span in it."""
    facts = drop_nulls({**verdict.facts, "score": verdict.score, "probability": verdict.probability})
    return {
        "assessment_name": options.score_name.replace(".", "_"),
        "trace_id": _trace_id(verdict),
        **({"span_id": verdict.span_id} if verdict.span_id else {}),
        "source": {"source_type": "CODE", "source_id": "ragassay"},
        "feedback": {"value": verdict.label},
        "rationale": verdict.explanation,
        "metadata": {
            ID_KEY: verdict.stable_id("mlflow", options.score_name),
            **{f"ragassay.{name}": _to_text(value) for name, value in facts.items()},
        },
    }


def _to_text(value: Any) -> str:
    """Return a value as text: MLflow's metadata have only texts."""
    return value if isinstance(value, str) else json.dumps(value)


def _trace_id(verdict: TraceVerdict) -> str:
    return f"tr-{verdict.trace_id}" if OTEL_TRACE_ID.fullmatch(verdict.trace_id) else verdict.trace_id


def send(client: ToolClient, verdicts: Sequence[TraceVerdict], options: SendOptions) -> list[Delivery]:
    """Send verdicts one after the other."""
    upserts = [partial(_upsert, client, build_assessment(verdict, options)) for verdict in verdicts]
    return [_read_reply(client, client.retry(upsert)) for upsert in upserts]


def _upsert(client: ToolClient, assessment: dict[str, Any]) -> ToolReply:
    """Create or update an assessment. Every try reads the trace first, so there is never a second one."""
    path = f"/api/3.0/mlflow/traces/{quote(assessment['trace_id'], safe='')}"
    reply = client.request("GET", path)
    if not reply.is_ok:
        return reply
    trace = reply.body.get("trace") if isinstance(reply.body, dict) else None
    if not isinstance(trace, dict):
        raise make_no_api_error(client, reply)
    assessments = (trace.get("trace_info") or {}).get("assessments") or []
    existing = next(
        (item for item in assessments if (item.get("metadata") or {}).get(ID_KEY) == assessment["metadata"][ID_KEY]), None
    )
    if existing is None:
        return client.request("POST", f"{path}/assessments", {"assessment": assessment})
    if all(existing.get(name) == assessment[name] for name in COMPARED_FIELDS):
        return reply
    changed = {"assessment": assessment, "update_mask": ",".join(COMPARED_FIELDS)}
    return client.request("PATCH", f"{path}/assessments/{quote(existing['assessment_id'], safe='')}", changed)


def _read_reply(client: ToolClient, reply: ToolReply) -> Delivery:
    if reply.is_ok:
        return SENT
    if reply.status == 404:
        if not isinstance(reply.body, dict):
            raise make_no_api_error(client, reply)
        return Delivery(DeliveryStatus.UNKNOWN, reply.reason)
    return Delivery(DeliveryStatus.REFUSED, reply.reason)


MLFLOW = PublishTarget("mlflow", BATCH, True, (), connect, build_assessment, send)
