"""Servers with the APIs of the tools that verdicts are published to, and with the faults that a test sets."""

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PUBLIC, SECRET = "pk-lf-test", "sk-lf-test"
LARGEST = 3_500_000  # bytes of a request to Langfuse
METHOD = ":method"
DROP, DROP_AFTER = "drop", "drop after"
"""The connection closes without an answer: before the request is processed, or after."""

Reply = tuple[int, Any]
Headers = dict[str, str]
Fault = Callable[[int], Reply | str | None]
"""Maps the number of a request, from 1, to its fault: another answer, DROP or DROP_AFTER; None for no fault."""


@dataclass
class Tool:
    """Stand-in for a tool.

    Attributes:
        answer: Maps path, headers and body to status and JSON.
        fault: Faults of requests; none by default.
        requests: Path and body of each processed request.
        headers: Headers of answers that are faults.
    """

    answer: Callable[[str, Headers, Any], Reply]
    fault: Fault = lambda _: None
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: Headers = field(default_factory=dict)
    url: str = ""
    count: int = 0
    lock: Any = field(default_factory=threading.Lock)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tool: Tool

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors: the client has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        tool = self.server.tool
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with tool.lock:
            tool.count += 1
            fault = tool.fault(tool.count)
            if fault == DROP or (fault is not None and not isinstance(fault, str)):
                reply: Reply | None = fault if isinstance(fault, tuple) else None
            else:
                body = json.loads(text) if text else None
                tool.requests.append((self.path, body))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = tool.answer(self.path, {**headers, METHOD: self.command}, body)
                reply = None if fault == DROP_AFTER else reply
        if reply is None:
            self.close_connection = True
            return
        is_text = isinstance(reply[1], str)
        data = reply[1].encode() if is_text else json.dumps(reply[1]).encode()
        self.send_response(reply[0])
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (tool.headers if fault else {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PATCH = do_POST

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serve_tool(tool: Tool) -> Iterator[Tool]:
    """Serve a tool on a free port of this machine, and set its `url`."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.tool = tool
    tool.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield tool
    finally:
        server.shutdown()
        server.server_close()


def proxy_tool(url: str) -> Tool:
    """Make a proxy of a real tool, which forwards requests without a fault."""
    import httpx2

    client = httpx2.Client(base_url=url, timeout=120, trust_env=False)

    def answer(path: str, headers: Headers, body: Any) -> Reply:
        response = client.request(headers[METHOD], path, json=body)
        try:
            return response.status_code, response.json()
        except ValueError:
            return response.status_code, response.text

    return Tool(answer)


class Langfuse:
    """Batch ingestion of scores by Langfuse's public API.

    The key of a score is its id, its name and the day of its time; an event with the same or a later time replaces it. An event
    with a known id is ignored. An answer of status 207 lists the faults of events.

    Attributes:
        scores: (day, name, id) -> time and body of the current score.
        refuse: Maps a score's body to a status and message if it is refused, or to None.
        taken: Number of stored events.
    """

    def __init__(self, refuse: Callable[[dict[str, Any]], tuple[int, str] | None] = lambda _: None) -> None:
        self.scores: dict[tuple[str, str, str], tuple[datetime, dict[str, Any]]] = {}
        self.events: set[str] = set()
        self.refuse, self.taken = refuse, 0

    def tool(self) -> Tool:
        return Tool(self.answer)

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        if path != "/api/public/ingestion":
            return 404, {"message": "Not Found"}
        if headers.get("authorization") != "Basic " + base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode():
            return 401, {"message": "Invalid credentials. Confirm that you've configured the correct host."}
        if int(headers["content-length"]) > LARGEST:
            return 413, {"message": "Request body too large"}
        if not isinstance(body, dict) or set(body) - {"batch", "metadata"} or not isinstance(body.get("batch"), list):
            return 400, {"message": "Invalid request data"}
        result: dict[str, list[Any]] = {"successes": [], "errors": []}
        for event in body["batch"]:
            status, reason = self._take(event)
            entry = {"id": event.get("id"), "status": status}
            fault = {"message": reason, "error": reason} if reason else {}
            result["errors" if reason else "successes"].append({**entry, **fault})
        return 207, result

    def _take(self, event: dict[str, Any]) -> tuple[int, str]:
        if set(event) != {"id", "type", "timestamp", "body"} or event["type"] != "score-create":
            return 400, "Invalid event"
        moment = datetime.fromisoformat(event["timestamp"])
        score = event["body"]
        fields = {"id", "traceId", "observationId", "name", "value", "dataType", "comment", "metadata"}
        kinds = {"CATEGORICAL": str, "NUMERIC": (int, float)}
        is_valid = (
            not set(score) - fields
            and all(isinstance(score.get(name), str) and score[name] for name in ("id", "traceId", "name"))
            and isinstance(score.get("value"), kinds.get(score.get("dataType"), ()))  # type: ignore[arg-type]
            and isinstance(score.get("comment", ""), str)
            and isinstance(score.get("metadata", {}), dict)
            and moment.tzinfo is not None
        )
        if not is_valid:
            return 400, "Invalid score"
        refused = self.refuse(score)
        if refused:
            return refused
        if event["id"] not in self.events:
            self.events.add(event["id"])
            self.taken += 1
            key = (str(moment.date()), score["name"], score["id"])
            if key not in self.scores or moment >= self.scores[key][0]:
                self.scores[key] = (moment, score)
        return 201, ""

    def named(self, name: str = "ragassay") -> dict[str, dict[str, Any]]:
        """Map each trace to its score with a name; a trace must not have two."""
        scores: dict[str, dict[str, Any]] = {}
        for (_, score_name, _), (_, score) in self.scores.items():
            if score_name == name:
                assert score["traceId"] not in scores, "a trace has the score twice"
                scores[score["traceId"]] = score
        return scores


class Collector:
    """Collector of OpenTelemetry logs over OTLP/HTTP in JSON, which parses requests with the protocol's own messages.

    Attributes:
        records: Accepted records as dicts of their attributes and fields.
        refuse: Maps the attributes of a record to whether it is refused.
        key: Key that every request must send; None requires none.
    """

    def __init__(self, refuse: Callable[[dict[str, Any]], bool] = lambda _: False, key: str | None = None) -> None:
        self.records: list[dict[str, Any]] = []
        self.refuse, self.key = refuse, key

    def tool(self) -> Tool:
        return Tool(self.answer)

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        from google.protobuf.json_format import Parse, ParseError  # type: ignore[import-untyped]
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

        if path != "/v1/logs":
            return 404, {"message": "404 page not found"}
        if self.key is not None and headers.get("x-key") != self.key:
            return 401, {"code": 16, "message": "Unauthenticated"}
        try:
            request = Parse(json.dumps(_ids_as_base64(body)), ExportLogsServiceRequest())
        except (ParseError, ValueError) as error:
            return 400, {"code": 3, "message": str(error)[:200]}
        records = [_read_record(r) for a in request.resource_logs for b in a.scope_logs for r in b.log_records]
        taken = [record for record in records if not self.refuse(record)]
        self.records += taken
        refused = len(records) - len(taken)
        return 200, {"partialSuccess": {"rejectedLogRecords": str(refused), "errorMessage": "too old"}} if refused else {}


def _ids_as_base64(body: Any) -> Any:
    """Convert ids from hex digits, as in OTLP's JSON, to base 64, as in protobuf's JSON."""
    for record in [r for a in body["resourceLogs"] for b in a["scopeLogs"] for r in b["logRecords"]]:
        for name, size in (("traceId", 16), ("spanId", 8)):
            if name in record:
                raw = bytes.fromhex(record[name])
                if len(raw) != size:
                    raise ValueError(f"{name} must have {size} bytes")
                record[name] = base64.b64encode(raw).decode()
    return body


def _read_record(record: Any) -> dict[str, Any]:
    attributes = {attribute.key: _read_value(attribute.value) for attribute in record.attributes}
    assert len(attributes) == len(record.attributes), "an attribute occurs twice"
    own = {"event": record.event_name, "trace": record.trace_id.hex(), "span": record.span_id.hex()}
    return {**attributes, **own, "time": record.time_unix_nano, "severity": record.severity_number}


def _read_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_read_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _read_value(item.value) for item in value.kvlist_value.values}
    return getattr(value, kind)
