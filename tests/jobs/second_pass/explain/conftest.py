"""A scored output with known flags, and a scripted server that explains them."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragassay.pipeline.verdict.deciding import find_deciding_sentences
from tests.chat_server import Reply, Serve, Server
from tests.jobs.conftest import read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, write_output

SENTENCE = "flagged_sentence"


@pytest.fixture(scope="session")
def flagged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days: 180 responses of two sentences; 30% are flagged."""
    days = dict(list(labeled_days().items())[:3])
    return write_output(tmp_path_factory.mktemp("explain") / "out", days, job())


@pytest.fixture
def flagged(flagged_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(flagged_once, tmp_path / "out"))


def read_question(body: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a request."""
    data: dict[str, Any] = json.loads(body["messages"][-1]["content"])
    return data


def make_reply(text: str, tokens: tuple[int, int] = (900, 60), finish: str = "stop") -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def reply_honestly(body: dict[str, Any]) -> Reply:
    """Reply as an honest model: a sentence with a signature is added, any other one is in the first passage."""
    question = read_question(body)
    is_added = "signed" in question[SENTENCE]
    answer = {"evidence": "" if is_added else question["passages"][0], "reason": "Nobody signs in the passages."}
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if "category" in properties:
        answer["category"] = "added" if is_added else "not_a_hallucination"
    elif not is_added:
        answer["reason"] = "UNKNOWN"
    return make_reply(json.dumps(answer))


def count_questions(server: Server) -> Counter[tuple[str, str]]:
    """Count the requests about each sentence of each response."""
    return Counter(
        (read_question(body)["question"] + read_question(body)["response"], read_question(body)[SENTENCE])
        for body in server.bodies
    )


def read_flags(output: Path) -> set[tuple[int, int]]:
    """Return (row_key, sentence index) of every deciding sentence."""
    return {
        (row["row_key"], number)
        for row in read_rows(output)
        for number in find_deciding_sentences(row["verdict"], row["sentences"])
    }


def read_explanations(output: Path, strategy: str) -> dict[tuple[int, int], dict[str, Any]]:
    """Read explanations: (row_key, sentence index) -> row and entry. Fails if a sentence occurs twice."""
    entries: dict[tuple[int, int], dict[str, Any]] = {}
    for row in read_rows(output, "explanations") if (output / "explanations").exists() else []:
        if row["strategy"] == strategy:
            for entry in row["explanations"]:
                key = row["row_key"], entry["sentence"]
                assert key not in entries
                entries[key] = {**row, **entry}
    return entries


@pytest.fixture
def model(serve: Serve, tmp_path: Path) -> Callable[..., tuple[Server, Path]]:
    """Start a scripted server, and write a job file that names it."""

    def start(reply: Callable[[dict[str, Any]], Reply] = reply_honestly, **more: Any) -> tuple[Server, Path]:
        server = serve(reply)
        settings = {"kind": "server", "base_url": server.url, "retries": 2, **more.pop("engine", {})}
        explainer = {"model": "m", "engine": settings, **more}
        config = write_job(tmp_path / "job.yaml", escalation={"explainer": explainer}, runtime={"wait_minutes": 0})
        return server, config

    return start
