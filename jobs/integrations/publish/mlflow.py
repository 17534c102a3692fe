"""Feedback on MLflow's traces: an assessment with the verdict, found again by what we wrote into its metadata.

MLflow gives assessments ids of its own. So a trace is looked at first: what we once wrote there is overwritten, else it is
created.
"""

import base64
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

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
    without_nulls,
)
from ragassay.jobs.integrations.publish.verdict import Verdict

BATCH = 10
"""Two requests a verdict, one after the other."""

KEYS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
ID = "ragassay.id"
OURS = ("feedback", "rationale", "metadata")
BARE = re.compile(r"[0-9a-f]{32}")
"""A trace's id as OpenTelemetry has it; MLflow puts `tr-` before it."""


def connect(url: str | None) -> Connection:
    """Where MLflow's server is: MLFLOW_TRACKING_URI; a token, or a name and password, where it wants them."""
    where = address(url, ("MLFLOW_TRACKING_URI",))
    token, user, password = map(key, KEYS)
    if user and password:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        return Connection(where, {"Authorization": f"Basic {basic}"}, " and ".join(KEYS[1:]))
    return Connection(where, {"Authorization": f"Bearer {token}"} if token else {}, " or ".join(KEYS[:2]))


def assessment(verdict: Verdict, sending: Sending) -> dict[str, Any]:
    """An assessment of a trace, or of a span in it."""
    facts = without_nulls({**verdict.facts, "score": verdict.score, "probability": verdict.probability})
    return {
        "assessment_name": sending.name.replace(".", "_"),
        "trace_id": _trace(verdict),
        **({"span_id": verdict.span_id} if verdict.span_id else {}),
        "source": {"source_type": "CODE", "source_id": "ragassay"},
        "feedback": {"value": verdict.label},
        "rationale": verdict.explanation,
        "metadata": {
            ID: verdict.id_of("mlflow", sending.name),
            **{f"ragassay.{name}": _text(value) for name, value in facts.items()},
        },
    }


def _text(value: Any) -> str:
    """MLflow's metadata are texts."""
    return value if isinstance(value, str) else json.dumps(value)


def _trace(verdict: Verdict) -> str:
    return f"tr-{verdict.trace_id}" if BARE.fullmatch(verdict.trace_id) else verdict.trace_id


def send(http: Http, verdicts: Sequence[Verdict], sending: Sending) -> list[Outcome]:
    """Send verdicts, one after the other."""
    tries = [partial(_upsert, http, assessment(verdict, sending)) for verdict in verdicts]
    return [_read(http, http.trying(one)) for one in tries]


def _upsert(http: Http, wanted: dict[str, Any]) -> Answer:
    """Create an assessment, or overwrite it where it is there: every try looks first, so it is never there twice."""
    path = f"/api/3.0/mlflow/traces/{quote(wanted['trace_id'], safe='')}"
    found = http.once("GET", path)
    if not found.ok:
        return found
    trace = found.body.get("trace") if isinstance(found.body, dict) else None
    if not isinstance(trace, dict):
        raise elsewhere(http, found)
    there = (trace.get("trace_info") or {}).get("assessments") or []
    mine = next((one for one in there if (one.get("metadata") or {}).get(ID) == wanted["metadata"][ID]), None)
    if mine is None:
        return http.once("POST", f"{path}/assessments", {"assessment": wanted})
    if all(mine.get(name) == wanted[name] for name in OURS):
        return found
    changed = {"assessment": wanted, "update_mask": ",".join(OURS)}
    return http.once("PATCH", f"{path}/assessments/{quote(mine['assessment_id'], safe='')}", changed)


def _read(http: Http, answer: Answer) -> Outcome:
    if answer.ok:
        return SENT
    if answer.status == 404:
        if not isinstance(answer.body, dict):
            raise elsewhere(http, answer)
        return Outcome(Fate.UNKNOWN, answer.reason)
    return Outcome(Fate.REFUSED, answer.reason)


MLFLOW = Target("mlflow", BATCH, True, (), connect, assessment, send)
