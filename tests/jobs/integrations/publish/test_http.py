"""Requests: how long is waited, how fast, and what is said of a tool's words."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from ragassay.jobs.integrations.publish import http
from ragassay.jobs.integrations.publish.http import Answer, Connection, Http
from tests.jobs.integrations.publish.conftest import Serve
from tests.raises import raises
from tests.tool_servers import Tool


def test_retry_after_is_a_number_or_a_date(monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.001)
    tool = serve(Tool(lambda *_: (200, {})))
    tool.fault = lambda number: (429, {}) if number == 1 else None
    for as_date in (False, True):
        started = time.monotonic()
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=2))
        tool.count, tool.headers = 0, {"Retry-After": date if as_date else "0.4"}
        asked = Http(Connection(tool.url), None)
        assert asked.trying(lambda asked=asked: asked.once("POST", "/", {})).ok  # type: ignore[misc]
        assert time.monotonic() - started >= 0.3 and tool.count == 2
    tool.count, tool.headers = 0, {"Retry-After": "86400"}
    with raises("publish.wait-too-long"):
        asked.trying(lambda: asked.once("POST", "/", {}))


def test_no_faster_than_allowed(serve: Serve) -> None:
    tool = serve(Tool(lambda *_: (200, {})))
    asked, started = Http(Connection(tool.url), 20), time.monotonic()
    for _ in range(7):
        asked.once("POST", "/", {})
    assert time.monotonic() - started >= 6 / 20 and asked.requests == tool.count == 7


def test_a_tool_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.001)
    asked = Http(Connection("http://127.0.0.1:9"), None)
    with raises("publish.unreachable", tries=10):
        asked.trying(lambda: asked.once("GET", "/"))


def test_what_a_tool_quotes_of_the_request_is_not_repeated() -> None:
    fault = {"loc": ["body", "data", 0, "result"], "msg": "Field required", "input": "the secret text"}
    assert Answer(422, {"detail": [fault]}).reason == "422: body.data.0.result: Field required"
    assert Answer(404, {"error_code": "NO", "message": "Not there"}).reason == "404: NO: Not there"
    assert Answer(500, "").reason == "500" and len(Answer(500, "x" * 999).reason) == 300


def test_a_fault_inside_the_tool_is_an_answer_only_if_it_comes_back(monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.001)
    tool = serve(Tool(lambda *_: (200, {})))
    asked = Http(Connection(tool.url), None)
    others: dict[int, Any] = {1: (503, {}), 2: (502, {}), 3: (429, {}), 4: (500, {}), 5: (503, {})}
    tool.fault = others.get
    assert asked.trying(lambda: asked.once("POST", "/", {})).ok and tool.count == 6
    tool.fault = lambda _: (500, {"message": "no"})
    assert asked.trying(lambda: asked.once("POST", "/", {})).reason == "500: no" and tool.count == 10
