"""Stand-ins for models behind a server and for the tools that verdicts are published to. All answers are deterministic."""

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
from tests.tool_servers import METHOD, Headers, Tool, serving

RECORDED = Path(__file__).parent / "recorded" / "facts.json"
"""log P(yes) and log P(no) of the bundled verifier, by the digest of a prompt; `python -m tests.golden --record` makes it."""

PROMPT = """\
Context:
{% for passage in context %}{{ passage }}
{% endfor %}
Question: {{ question }}
Statement: {{ sentence }}"""
"""Prompt of the served stand-ins: what recorded values are known by."""

UNKNOWN = "the recorded table does not know this prompt"


def prompt_of(question: str, context: list[str], sentence: str) -> str:
    """The prompt of a sentence, as PROMPT renders it."""
    return "Context:\n" + "".join(f"{passage}\n" for passage in context) + f"\nQuestion: {question}\nStatement: {sentence}"


def key_of(prompt: str) -> str:
    """Key of a prompt in the recorded table; spaces do not count."""
    return hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()[:16]


def number_of(text: str) -> float:
    """A number from 0 to 1 that depends on a text alone."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12


@dataclass
class Servers:
    """The stand-ins of a session.

    Attributes:
        chat: Base address of the models.
        tools: Answers for the tools.
        faults: Text in a prompt -> what is done in place of an answer; a case sets it and takes it back.
        faulty: Prompts that asked for recorded values that are not there.
    """

    chat: str
    tools: Tool
    faults: dict[str, Callable[[], Reply]] = field(default_factory=dict)
    faulty: list[str] = field(default_factory=list)

    def slm(self, model: str, **more: Any) -> dict[str, Any]:
        """A served member: `recorded` has the bundled verifier's values, others invent theirs from the prompt."""
        engine = {"kind": "server", "base_url": self.chat, "retries": 0, "concurrency": 4}
        return {"name": model, "model": model, "prompt": PROMPT, "engine": engine, **more}

    def answer(self, body: dict[str, Any]) -> Reply:
        """Answer a chat."""
        prompt = body["messages"][-1]["content"]
        for text, fault in list(self.faults.items()):
            if text in prompt:
                return fault()
        if body["model"] == "recorded":
            values = recorded().get(key_of(prompt))
            if values is None and not prompt.startswith("Context:"):  # what a server is asked to see whether it answers
                return _chances(-0.5, -1.0)
            if values is None:
                self.faulty.append(prompt)
                return 400, {"error": {"message": UNKNOWN}}
            return _chances(*values)
        if body["model"] == "reasoner":
            return _explanation(body)
        return _chances(*_invented(body["model"], prompt))


def recorded() -> dict[str, tuple[float, float]]:
    """The recorded table."""
    values: dict[str, tuple[float, float]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return values


def _invented(model: str, prompt: str) -> tuple[float, float]:
    """Log-probabilities from what is asked: words that the context lacks make a no likelier, and a digest adds noise."""
    context, _, rest = prompt.partition("\nQuestion:")
    statement = rest.rpartition("Statement:")[2] or prompt
    words = re.findall(r"\w+", statement.lower())
    missing = sum(word not in context.lower() for word in words) / max(1, len(words))
    odds = 4 - 14 * missing + 3 * (number_of(model + prompt) - 0.5)
    mass = 0.9 + 0.09 * number_of(prompt + model)
    yes = mass / (1 + math.exp(-odds))
    return math.log(yes), math.log(mass - yes)


def _chances(log_p_yes: float, log_p_no: float) -> Reply:
    return completion({"Yes": math.exp(log_p_yes), "No": math.exp(log_p_no)}, "Yes" if log_p_yes > log_p_no else "No")


def _explanation(body: dict[str, Any]) -> Reply:
    """An answer of the reasoner: by the flagged sentence alone."""
    asked = json.loads(body["messages"][-1]["content"])
    number = number_of(asked["flagged_sentence"])
    said = {"evidence": asked["passages"][0] if number < 0.7 else "", "reason": f"The passages say otherwise ({number:.2f})."}
    if "category" in body["response_format"]["json_schema"]["schema"]["properties"]:
        said["category"] = "wrong_value" if number < 0.4 else "not_a_hallucination" if number < 0.7 else "added"
    elif number < 0.3:
        said["reason"] = "UNKNOWN"
    text = json.dumps(said) if number < 0.95 else "I can't say."
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def wait_for(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until something is so.

    Raises:
        AssertionError: It took too long.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def _answer_tool(path: str, headers: Headers, body: Any) -> Reply:
    """Take whatever a tool is sent, and answer as it does."""
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
    with serving(Tool(_answer_tool)) as tools:
        servers = Servers("", tools)
        chat = Server(servers.answer)
        servers.chat = chat.url
        threading.Thread(target=chat.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield servers
        finally:
            chat.shutdown()
            chat.server_close()
