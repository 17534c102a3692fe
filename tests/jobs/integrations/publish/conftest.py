"""Fixtures: tools on loopback, and the keys of a Langfuse project in the environment."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ragassay.jobs.integrations.publish import http, state
from tests.tool_servers import PUBLIC, SECRET, Tool, serve_tool

Serve = Callable[[Tool], Tool]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda tool: stack.enter_context(serve_tool(tool))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGFUSE_HOST", "LANGFUSE_BASE_URL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)


@pytest.fixture
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without a wait, and write the state after every reply."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(state, "WRITE_INTERVAL_SECONDS", 0.0)
