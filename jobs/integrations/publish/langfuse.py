"""Langfuse: a categorical score with the verdict and numeric scores with score and probability, on its traces.

Scores go through the batch ingestion of the public API (`score-create`), which every version has. A score with a known id and a
time on the same day replaces the earlier one; the later time wins.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Connection, RetryableError, ToolClient, ToolReply, describe_body
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
    send_batch,
)
from ragassay.jobs.integrations.publish.verdict import TraceVerdict
from ragassay.pipeline.errors import ConfigError

KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
PATH = "/api/public/ingestion"
BATCH = 50
"""Verdicts per request, with two or three events each. Requests may have 3.5 MB; a larger one (413) is sent in halves."""


def connect(url: str | None) -> Connection:
    """Connect to Langfuse: LANGFUSE_HOST or LANGFUSE_BASE_URL, and the two keys of a project."""
    public, secret = map(read_key, KEYS)
    if not (public and secret):
        raise ConfigError(errors.NO_LANGFUSE_KEYS, public_key=KEYS[0], secret_key=KEYS[1])
    basic = base64.b64encode(f"{public}:{secret}".encode()).decode()
    address = resolve_url(url, ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"))
    return Connection(address, {"Authorization": f"Basic {basic}"}, " and ".join(KEYS), public)


def build_events(verdict: TraceVerdict, options: SendOptions) -> list[dict[str, Any]]:
    """Return the scores of a verdict as ingestion events."""
    events = []
    metadata = drop_nulls({**verdict.facts, "probability": verdict.probability})
    for name, kind, value in _list_scores(verdict, options.score_name):
        body = {
            "id": verdict.stable_id("langfuse", name),
            "traceId": verdict.trace_id,
            "observationId": verdict.span_id,
            "name": name,
            "value": value,
            "dataType": kind,
            "comment": verdict.explanation if name == options.score_name else None,
            "metadata": metadata if name == options.score_name else None,
        }
        timestamp = options.send_time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": "score-create", "timestamp": timestamp, "body": drop_nulls(body)}
        # The id of the event is a digest of its content, so a repeated event is recognized.
        events.append({"id": hashlib.blake2b(json.dumps(event).encode(), digest_size=16).hexdigest(), **event})
    return events


def _list_scores(verdict: TraceVerdict, name: str) -> Iterator[tuple[str, str, str | float]]:
    yield name, "CATEGORICAL", verdict.label
    if verdict.score is not None:
        yield f"{name}_score", "NUMERIC", verdict.score
    if verdict.probability is not None:
        yield f"{name}_probability", "NUMERIC", verdict.probability


def send(client: ToolClient, verdicts: Sequence[TraceVerdict], options: SendOptions) -> list[Delivery]:
    """Send verdicts; of a batch that Langfuse accepts in part, send the rest again."""
    deliveries: dict[str, Delivery] = {}  # by event id

    def post(part: Sequence[TraceVerdict]) -> ToolReply:
        batch = [event for verdict in part for event in build_events(verdict, options) if event["id"] not in deliveries]
        reply = client.request("POST", PATH, {"batch": batch})
        if reply.is_ok and isinstance(reply.body, dict):
            note = _record_results(reply.body, deliveries)
            missing = [event["id"] for event in batch if event["id"] not in deliveries]
            if missing:
                raise RetryableError(f"{len(missing)} scores were not accepted{note}", reply=reply)
        return reply

    def read(reply: ToolReply, part: Sequence[TraceVerdict]) -> list[Delivery] | None:
        if reply.status in {404, 405}:
            raise make_no_api_error(client, reply)
        if not (reply.is_ok and isinstance(reply.body, dict)):
            return None
        not_accepted = Delivery(DeliveryStatus.REFUSED, f"not accepted in any try{_record_results(reply.body, {})}")
        return [
            _first_failure([deliveries.get(event["id"], not_accepted) for event in build_events(verdict, options)])
            for verdict in part
        ]

    return send_batch(client, verdicts, post, read)


def _record_results(body: dict[str, Any], deliveries: dict[str, Delivery]) -> str:
    """Record accepted events and events refused for good; return a note about an event that can be retried."""
    for item in body.get("successes") or []:
        deliveries[item["id"]] = SENT
    retry_note = ""
    for item in body.get("errors") or []:
        status, reason = int(item.get("status") or 0), hide_secrets(f"{item.get('status')}: {describe_body(item)}")[:300]
        if status == 429 or status >= 500:
            retry_note = f" ({reason})"
        else:
            deliveries[item["id"]] = Delivery(DeliveryStatus.REFUSED, reason)
    return retry_note


def _first_failure(deliveries: Sequence[Delivery]) -> Delivery:
    return next((delivery for delivery in deliveries if delivery.status is not DeliveryStatus.SENT), SENT)


LANGFUSE = PublishTarget(
    "langfuse", BATCH, True, (), connect, lambda verdict, options: {"batch": build_events(verdict, options)}, send
)
