"""Scores on Langfuse's traces: a categorical one with the verdict, numeric ones with score and probability.

They go through the batch ingestion of its public API (`score-create`), which every version has. Langfuse takes a score with an
id that it knows, and a time of the same day, as the same score: the later time holds.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Answer, Connection, Http, TryAgainError, words
from ragassay.jobs.integrations.publish.target import (
    SENT,
    Fate,
    Outcome,
    Sending,
    Target,
    address,
    elsewhere,
    key,
    send_batch,
    without_nulls,
)
from ragassay.jobs.integrations.publish.verdict import Verdict
from ragassay.pipeline.errors import ConfigError

KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
PATH = "/api/public/ingestion"
BATCH = 50
"""Two or three events a verdict; a request may have 3.5 MB. One that is too large anyway (413) is sent in halves."""


def connect(url: str | None) -> Connection:
    """Where Langfuse is: LANGFUSE_HOST or LANGFUSE_BASE_URL, with the two keys of a project."""
    public, secret = map(key, KEYS)
    if not (public and secret):
        raise ConfigError(errors.NO_LANGFUSE_KEYS, public_key=KEYS[0], secret_key=KEYS[1])
    basic = base64.b64encode(f"{public}:{secret}".encode()).decode()
    where = address(url, ("LANGFUSE_HOST", "LANGFUSE_BASE_URL"))
    return Connection(where, {"Authorization": f"Basic {basic}"}, " and ".join(KEYS), public)


def events(verdict: Verdict, sending: Sending) -> list[dict[str, Any]]:
    """The scores of a verdict, each in its envelope."""
    found = []
    metadata = without_nulls({**verdict.facts, "probability": verdict.probability})
    for name, kind, value in _scores(verdict, sending.name):
        body = {
            "id": verdict.id_of("langfuse", name),
            "traceId": verdict.trace_id,
            "observationId": verdict.span_id,
            "name": name,
            "value": value,
            "dataType": kind,
            "comment": verdict.explanation if name == sending.name else None,
            "metadata": metadata if name == sending.name else None,
        }
        moment = sending.moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"type": "score-create", "timestamp": moment, "body": without_nulls(body)}
        # The envelope's own id is that of what is said: said again it is the same event.
        found.append({"id": hashlib.blake2b(json.dumps(event).encode(), digest_size=16).hexdigest(), **event})
    return found


def _scores(verdict: Verdict, name: str) -> Iterator[tuple[str, str, str | float]]:
    yield name, "CATEGORICAL", verdict.label
    if verdict.score is not None:
        yield f"{name}_score", "NUMERIC", verdict.score
    if verdict.probability is not None:
        yield f"{name}_probability", "NUMERIC", verdict.probability


def send(http: Http, verdicts: Sequence[Verdict], sending: Sending) -> list[Outcome]:
    """Send verdicts; of a batch that Langfuse takes in part, what it could not take now again."""
    said: dict[str, Outcome] = {}  # what it said of an event

    def post(some: Sequence[Verdict]) -> Answer:
        batch = [event for verdict in some for event in events(verdict, sending) if event["id"] not in said]
        answer = http.once("POST", PATH, {"batch": batch})
        if answer.ok and isinstance(answer.body, dict):
            again = _note(answer.body, said)
            left = [event["id"] for event in batch if event["id"] not in said]
            if left:
                raise TryAgainError(f"{len(left)} scores were not taken{again}", answer=answer)
        return answer

    def read(answer: Answer, some: Sequence[Verdict]) -> list[Outcome] | None:
        if answer.status in {404, 405}:
            raise elsewhere(http, answer)
        if not (answer.ok and isinstance(answer.body, dict)):
            return None
        untaken = Outcome(Fate.REFUSED, f"not taken, however often it was sent{_note(answer.body, {})}")
        return [_worst([said.get(event["id"], untaken) for event in events(verdict, sending)]) for verdict in some]

    return send_batch(http, verdicts, post, read)


def _note(body: dict[str, Any], said: dict[str, Outcome]) -> str:
    """Note which events were taken, and which refused for good; gives what was said of one that was not taken for now."""
    for one in body.get("successes") or []:
        said[one["id"]] = SENT
    again = ""
    for one in body.get("errors") or []:
        status, why = int(one.get("status") or 0), hide_secrets(f"{one.get('status')}: {words(one)}")[:300]
        if status == 429 or status >= 500:
            again = f" ({why})"
        else:
            said[one["id"]] = Outcome(Fate.REFUSED, why)
    return again


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    return next((outcome for outcome in outcomes if outcome.fate is not Fate.SENT), SENT)


LANGFUSE = Target("langfuse", BATCH, True, (), connect, lambda verdict, sending: {"batch": events(verdict, sending)}, send)
