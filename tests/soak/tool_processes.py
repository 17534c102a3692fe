"""Real tools on loopback, each in a separate environment that is made on first use, with a database in a folder of the test."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.conftest import free_port
from tests.soak.own_venv import make_venv

PHOENIX, MLFLOW = "arize-phoenix==20.26.1", "mlflow==3.17.2"
START_SECONDS = 300.0


@contextmanager
def run_server(command: Sequence[str | Path], url: str, log: Path, **env: str) -> Iterator[str]:
    """Run a server process; the block starts when it answers."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))} | env
    with log.open("wb") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out, env=environment, cwd=log.parent)
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, f"no answer: {log.read_text()[-3000:]}"
                try:
                    if httpx2.get(url, timeout=5, trust_env=False).status_code == 200:
                        break
                except httpx2.TransportError:
                    pass
                time.sleep(0.3)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def run_phoenix(folder: Path) -> Iterator[str]:
    """Run Phoenix, and yield its address."""
    bin_, port = make_venv("phoenix", PHOENIX), free_port()
    env = {
        "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(free_port()), "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with run_server([bin_ / "phoenix", "serve"], f"{url}/healthz", folder / "phoenix.log", **env):
        yield url


@contextmanager
def run_mlflow(folder: Path) -> Iterator[str]:
    """Run MLflow's tracking server on SQLite, and yield its address."""
    bin_, port = make_venv("mlflow", MLFLOW), free_port()
    store = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
    command: list[str | Path] = [
        bin_ / "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
        *store,
    ]
    url = f"http://127.0.0.1:{port}"
    env = {"PATH": f"{bin_}:{os.environ['PATH']}", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with run_server(command, f"{url}/health", folder / "mlflow.log", **env):
        yield url


def encode_traces(ids: Sequence[tuple[str, str]]) -> bytes:
    """Encode an OTLP request with a trace of one span for each pair of ids (hex digits), as applications send it."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    now = time.time_ns()
    for trace, span in ids:
        spans.add(
            trace_id=bytes.fromhex(trace),
            span_id=bytes.fromhex(span),
            name="answer",
            start_time_unix_nano=now - 10**9,
            end_time_unix_nano=now,
        )
    data: bytes = request.SerializeToString()
    return data


def send_traces(url: str, ids: Sequence[tuple[str, str]], **headers: str) -> None:
    """Send traces to a tool, 200 per request."""
    for first in range(0, len(ids), 200):
        response = httpx2.post(
            f"{url}/v1/traces",
            content=encode_traces(ids[first : first + 200]),
            headers={"Content-Type": "application/x-protobuf", **headers},
            timeout=120,
            trust_env=False,
        )
        assert response.status_code == 200, response.text[:500]


def get(url: str, **params: Any) -> Any:
    """Send a GET request and return its JSON."""
    response = httpx2.get(url, params=params, timeout=120, trust_env=False)
    assert response.status_code == 200, response.text[:500]
    return response.json()


def post(url: str, body: Any) -> Any:
    """Send a POST request and return its JSON."""
    response = httpx2.post(url, json=body, timeout=120, trust_env=False)
    assert response.status_code == 200, response.text[:500]
    return response.json()
