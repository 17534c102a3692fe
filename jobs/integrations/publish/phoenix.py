"""Annotations of Phoenix's spans, or of its traces where a row names no span.

Phoenix knows an annotation again by its span or trace, its name and its `identifier`, and overwrites it. Asked to write at once
(`sync`), it says which spans and traces it does not know.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from ragassay.jobs.integrations.publish.http import Answer, Connection, Http
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

BATCH = 100
NO_ROUTE = {"detail": "Not Found"}
"""What its framework says of an address that it does not serve."""
KEY = "PHOENIX_API_KEY"
KIND = "CODE"
"""Of HUMAN, LLM and CODE: members of the ensemble are models and programs, and no judge was asked in a chat."""


def connect(url: str | None) -> Connection:
    """Where Phoenix is: PHOENIX_COLLECTOR_ENDPOINT, else this machine; PHOENIX_API_KEY where it wants one."""
    where = address(url, ("PHOENIX_COLLECTOR_ENDPOINT",), "http://localhost:6006").removesuffix("/v1/traces")
    token = key(KEY)
    return Connection(where, {"Authorization": f"Bearer {token}"} if token else {}, KEY)


def annotation(verdict: Verdict, sending: Sending) -> dict[str, Any]:
    """An annotation of a span, or of a trace."""
    whose = {"span_id": verdict.span_id} if verdict.span_id else {"trace_id": verdict.trace_id}
    return {
        **whose,
        "name": sending.name,
        "annotator_kind": KIND,
        "result": without_nulls({"label": verdict.label, "score": verdict.score, "explanation": verdict.explanation}),
        "metadata": without_nulls({**verdict.facts, "probability": verdict.probability}),
        "identifier": verdict.id_of("phoenix", sending.name),
    }


def send(http: Http, verdicts: Sequence[Verdict], sending: Sending) -> list[Outcome]:
    """Send verdicts: those with a span, and those without."""
    places: dict[str, Callable[[Verdict], str | None]] = {
        "/v1/span_annotations": lambda v: v.span_id,
        "/v1/trace_annotations": lambda v: None if v.span_id else v.trace_id,
    }
    found: dict[int, Outcome] = {}
    for path, id_of in places.items():
        mine = [i for i, verdict in enumerate(verdicts) if id_of(verdict)]
        outcomes = _send(http, path, [verdicts[i] for i in mine], id_of, sending)
        found |= dict(zip(mine, outcomes, strict=True))
    return [found[i] for i in range(len(verdicts))]


def _send(
    http: Http, path: str, verdicts: Sequence[Verdict], id_of: Callable[[Verdict], str | None], sending: Sending
) -> list[Outcome]:
    def post(some: Sequence[Verdict]) -> Answer:
        return http.once("POST", path, {"data": [annotation(v, sending) for v in some]}, {"sync": "true"})

    def read(answer: Answer, some: Sequence[Verdict]) -> list[Outcome] | None:
        if answer.ok:
            return [SENT] * len(some)
        if answer.status != 404:
            return None
        if answer.body == NO_ROUTE:
            raise elsewhere(http, answer)
        known = [v for v in some if not _names(answer, id_of(v))]
        if len(known) == len(some):  # it says not which
            return [Outcome(Fate.UNKNOWN, answer.reason)] if len(some) == 1 else None
        later = iter(send_batch(http, known, post, read))
        unknown = Outcome(Fate.UNKNOWN, answer.reason)
        return [unknown if _names(answer, id_of(v)) else next(later) for v in some]

    return send_batch(http, verdicts, post, read)


def _names(answer: Answer, one: str | None) -> bool:
    """Whether an answer names an id, and not one that it is a part of."""
    text = answer.body if isinstance(answer.body, str) else str(answer.body)
    return re.search(rf"(?<![\w-]){re.escape(one or '')}(?![\w-])", text) is not None


PHOENIX = Target("phoenix", BATCH, True, ("span_id",), connect, annotation, send)
