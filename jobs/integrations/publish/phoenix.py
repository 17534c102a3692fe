"""Phoenix: annotations of spans, or of traces for rows without a span.

Phoenix identifies an annotation by its span or trace, name and `identifier`, and overwrites it. With `sync` it reports which
spans and traces it does not have.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

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
    send_batch,
)
from ragassay.jobs.integrations.publish.verdict import TraceVerdict

BATCH = 100
NO_ROUTE_BODY = {"detail": "Not Found"}
"""Body of the reply for an address that Phoenix does not serve."""
KEY = "PHOENIX_API_KEY"
KIND = "CODE"
"""One of HUMAN, LLM and CODE: the ensemble has models and programs, and no judge is asked in a chat."""


def connect(url: str | None) -> Connection:
    """Connect to Phoenix: PHOENIX_COLLECTOR_ENDPOINT or this machine, and PHOENIX_API_KEY if set."""
    address = resolve_url(url, ("PHOENIX_COLLECTOR_ENDPOINT",), "http://localhost:6006").removesuffix("/v1/traces")
    token = read_key(KEY)
    return Connection(address, {"Authorization": f"Bearer {token}"} if token else {}, KEY)


def build_annotation(verdict: TraceVerdict, options: SendOptions) -> dict[str, Any]:
    """Return the annotation of a span or a trace."""
    subject = {"span_id": verdict.span_id} if verdict.span_id else {"trace_id": verdict.trace_id}
    return {
        **subject,
        "name": options.score_name,
        "annotator_kind": KIND,
        "result": drop_nulls({"label": verdict.label, "score": verdict.score, "explanation": verdict.explanation}),
        "metadata": drop_nulls({**verdict.facts, "probability": verdict.probability}),
        "identifier": verdict.stable_id("phoenix", options.score_name),
    }


def send(client: ToolClient, verdicts: Sequence[TraceVerdict], options: SendOptions) -> list[Delivery]:
    """Send verdicts, those with a span and those without separately."""
    id_readers: dict[str, Callable[[TraceVerdict], str | None]] = {
        "/v1/span_annotations": lambda v: v.span_id,
        "/v1/trace_annotations": lambda v: None if v.span_id else v.trace_id,
    }
    deliveries: dict[int, Delivery] = {}
    for path, id_of in id_readers.items():
        indices = [i for i, verdict in enumerate(verdicts) if id_of(verdict)]
        path_deliveries = _send_to_path(client, path, [verdicts[i] for i in indices], id_of, options)
        deliveries |= dict(zip(indices, path_deliveries, strict=True))
    return [deliveries[i] for i in range(len(verdicts))]


def _send_to_path(
    client: ToolClient,
    path: str,
    verdicts: Sequence[TraceVerdict],
    id_of: Callable[[TraceVerdict], str | None],
    options: SendOptions,
) -> list[Delivery]:
    def post(part: Sequence[TraceVerdict]) -> ToolReply:
        return client.request("POST", path, {"data": [build_annotation(v, options) for v in part]}, {"sync": "true"})

    def read(reply: ToolReply, part: Sequence[TraceVerdict]) -> list[Delivery] | None:
        if reply.is_ok:
            return [SENT] * len(part)
        if reply.status != 404:
            return None
        if reply.body == NO_ROUTE_BODY:
            raise make_no_api_error(client, reply)
        known = [v for v in part if not _names_id(reply, id_of(v))]
        if len(known) == len(part):  # the reply does not name it
            return [Delivery(DeliveryStatus.UNKNOWN, reply.reason)] if len(part) == 1 else None
        retried = iter(send_batch(client, known, post, read))
        unknown = Delivery(DeliveryStatus.UNKNOWN, reply.reason)
        return [unknown if _names_id(reply, id_of(v)) else next(retried) for v in part]

    return send_batch(client, verdicts, post, read)


def _names_id(reply: ToolReply, subject_id: str | None) -> bool:
    """Return whether a reply contains an id, not only as part of a longer one."""
    text = reply.body if isinstance(reply.body, str) else str(reply.body)
    return re.search(rf"(?<![\w-]){re.escape(subject_id or '')}(?![\w-])", text) is not None


PHOENIX = PublishTarget("phoenix", BATCH, True, ("span_id",), connect, build_annotation, send)
