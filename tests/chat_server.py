"""A small server with the chat completions API, for tests of its clients."""

import json
import math
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Reply = tuple[int, Any]  # HTTP status, and a body that is sent as JSON (a string: as HTML)


class Server(ThreadingHTTPServer):
    """Server of POST /v1/chat/completions; `reply` makes each answer from the request's body."""

    daemon_threads = True

    def __init__(self, reply: Callable[[dict[str, Any]], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors: a client that no longer waits has closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: the second would wait 40 ms for the client's ACK
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.server.in_flight += 1
            self.server.most_in_flight = max(self.server.most_in_flight, self.server.in_flight)
        is_known_path = self.path == "/v1/chat/completions"
        status, reply = self.server.reply(body) if is_known_path else (404, {"detail": "Not Found"})
        with self.server.lock:
            self.server.in_flight -= 1
        data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(reply, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status in {301, 307}:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[dict[str, Any]], Reply]], Server]]:
    servers: list[Server] = []

    def start(reply: Callable[[dict[str, Any]], Reply]) -> Server:
        servers.append(Server(reply))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


Serve = Callable[[Callable[[dict[str, Any]], Reply]], Server]


def completion(chances: dict[str, float | None] | None = None, word: str | None = None) -> Reply:
    """Make a completion whose first token has these alternatives, likeliest first."""
    word = next(iter(chances or {}), "") if word is None else word
    logprobs = None
    if chances:
        alternatives = [
            {"token": token, "logprob": p if p is None else math.log(p), "bytes": list(token.encode())}
            for token, p in chances.items()
        ]
        logprobs = {"content": [{**alternatives[0], "top_logprobs": alternatives}], "refusal": None}
    choice = {"index": 0, "message": {"role": "assistant", "content": word}, "finish_reason": "length", "logprobs": logprobs}
    usage = {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41}
    return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
