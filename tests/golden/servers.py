"""Stand-ins for served models and for the tools that verdicts are published to. All answers are deterministic."""

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chat_server import Reply, Server, completion
from tests.tool_servers import METHOD, Headers, Tool, serve_tool

RECORDED = Path(__file__).parent / "recorded" / "facts.json"
"""Digest of a prompt -> log P(yes) and log P(no) of the bundled verifier; written by `python -m tests.golden --record`."""

PROMPT = """\
Context:
{% for passage in context %}{{ passage }}
{% endfor %}
Question: {{ question }}
Statement: {{ sentence }}"""
"""Prompt of the served stand-ins; its digest is the key of a recorded value."""

UNKNOWN = "the recorded table does not have this prompt"


def build_prompt(question: str, context: list[str], sentence: str) -> str:
    """Build the prompt of a sentence, as PROMPT renders it."""
    return "Context:\n" + "".join(f"{passage}\n" for passage in context) + f"\nQuestion: {question}\nStatement: {sentence}"


def digest_prompt(prompt: str) -> str:
    """Compute the key of a prompt in the recorded table; whitespace does not count."""
    return hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()[:16]


def hash_to_number(text: str) -> float:
    """Hash a text to a number from 0 to 1."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12


@dataclass
class Servers:
    """Stand-ins of a session.

    Attributes:
        chat: Base address of the models.
        tools: Stand-in for the tools.
        faults: Text in a prompt -> function that returns the reply instead; set and cleared by a case.
        unrecorded: Prompts without a recorded value.
    """

    chat: str
    tools: Tool
    faults: dict[str, Callable[[], Reply]] = field(default_factory=dict)
    unrecorded: list[str] = field(default_factory=list)

    def slm(self, model: str, **more: Any) -> dict[str, Any]:
        """Configure a served member; `recorded` has the bundled verifier's values, others derive theirs from the prompt."""
        engine = {"kind": "server", "base_url": self.chat, "retries": 0, "concurrency": 4}
        return {"name": model, "model": model, "prompt": PROMPT, "engine": engine, **more}

    def answer(self, body: dict[str, Any]) -> Reply:
        """Answer a chat request."""
        prompt = body["messages"][-1]["content"]
        for text, fault in list(self.faults.items()):
            if text in prompt:
                return fault()
        if body["model"] == "recorded":
            values = read_recorded().get(digest_prompt(prompt))
            if values is None and not prompt.startswith("Context:"):  # the probe that checks whether the server answers
                return _complete(-0.5, -1.0)
            if values is None:
                self.unrecorded.append(prompt)
                return 400, {"error": {"message": UNKNOWN}}
            return _complete(*values)
        if body["model"] == "reasoner":
            return _explain(body)
        return _complete(*_invent_logprobs(body["model"], prompt))


def read_recorded() -> dict[str, tuple[float, float]]:
    """Read the recorded table."""
    values: dict[str, tuple[float, float]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return values


def _invent_logprobs(model: str, prompt: str) -> tuple[float, float]:
    """Derive logprobs from a prompt: words missing in the context make "no" likelier, and a hash adds noise."""
    context, _, rest = prompt.partition("\nQuestion:")
    statement = rest.rpartition("Statement:")[2] or prompt
    words = re.findall(r"\w+", statement.lower())
    missing = sum(word not in context.lower() for word in words) / max(1, len(words))
    odds = 4 - 14 * missing + 3 * (hash_to_number(model + prompt) - 0.5)
    mass = 0.9 + 0.09 * hash_to_number(prompt + model)
    yes = mass / (1 + math.exp(-odds))
    return math.log(yes), math.log(mass - yes)


def _complete(log_p_yes: float, log_p_no: float) -> Reply:
    return completion({"Yes": math.exp(log_p_yes), "No": math.exp(log_p_no)}, "Yes" if log_p_yes > log_p_no else "No")


def _explain(body: dict[str, Any]) -> Reply:
    """Answer as the reasoner, depending only on the flagged sentence."""
    request = json.loads(body["messages"][-1]["content"])
    number = hash_to_number(request["flagged_sentence"])
    explanation = {"evidence": request["passages"][0] if number < 0.7 else "", "reason": f"The passages differ ({number:.2f})."}
    if "category" in body["response_format"]["json_schema"]["schema"]["properties"]:
        explanation["category"] = "wrong_value" if number < 0.4 else "not_a_hallucination" if number < 0.7 else "added"
    elif number < 0.3:
        explanation["reason"] = "UNKNOWN"
    text = json.dumps(explanation) if number < 0.95 else "Not sure."
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until a condition is true.

    Raises:
        AssertionError: It was still false after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition was still false after {seconds} s"
        time.sleep(0.05)


def _answer_tool(path: str, headers: Headers, body: Any) -> Reply:
    """Accept every request, and answer as the tool does."""
    if path == "/api/public/ingestion":
        return 207, {"successes": [{"id": event["id"], "status": 201} for event in body["batch"]], "errors": []}
    if "_annotations" in path:
        return 200, {"data": [{"id": "x"} for _ in body["data"]]}
    if "/api/3.0/mlflow/traces/" in path:
        if headers[METHOD] == "GET":
            return 200, {"trace": {"trace_info": {"trace_id": path.rsplit("/", 1)[-1], "assessments": []}}}
        return 200, {"assessment": {**body["assessment"], "assessment_id": "a-1"}}
    return 200, {}


@contextmanager
def serve() -> Iterator[Servers]:
    """Start the stand-ins on free ports."""
    with serve_tool(Tool(_answer_tool)) as tools:
        servers = Servers("", tools)
        chat = Server(servers.answer)
        servers.chat = chat.url
        threading.Thread(target=chat.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield servers
        finally:
            chat.shutdown()
            chat.server_close()
