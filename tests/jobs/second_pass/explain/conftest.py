"""A scored output with known flags, and a scripted server that explains them."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Reply, Serve, Server
from tests.jobs.conftest import read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, write_output

SENTENCE = "flagged_sentence"


@pytest.fixture(scope="session")
def flagged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days, 180 responses of two sentences, 30 % of them flagged."""
    days = dict(list(labeled_days().items())[:3])
    return write_output(tmp_path_factory.mktemp("explain") / "out", days, job())


@pytest.fixture
def flagged(flagged_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(flagged_once, tmp_path / "out"))


def asked(body: dict[str, Any]) -> dict[str, Any]:
    """What a request is about."""
    data: dict[str, Any] = json.loads(body["messages"][-1]["content"])
    return data


def told(text: str, tokens: tuple[int, int] = (900, 60), finish: str = "stop") -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return 200, {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def explains(body: dict[str, Any]) -> Reply:
    """An honest model: what was signed by anybody is added, whatever else was flagged stands in the first passage."""
    about = asked(body)
    added = "signed" in about[SENTENCE]
    said = {"evidence": "" if added else about["passages"][0], "reason": "Nobody signs in the passages."}
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if "category" in properties:
        said["category"] = "added" if added else "not_a_hallucination"
    elif not added:
        said["reason"] = "UNKNOWN"
    return told(json.dumps(said))


def questions(server: Server) -> Counter[tuple[str, str]]:
    """How often the server was asked about each response's sentence."""
    return Counter((asked(body)["question"] + asked(body)["response"], asked(body)[SENTENCE]) for body in server.bodies)


def flags(output: Path) -> set[tuple[int, int]]:
    """(row_key, sentence) of everything that is flagged."""
    return {
        (row["row_key"], number)
        for row in read_rows(output)
        for number, sentence in enumerate(row["sentences"] or [])
        if sentence["flagged"]
    }


def outcomes(output: Path, strategy: str) -> dict[tuple[int, int], dict[str, Any]]:
    """(row_key, sentence) -> what is written; a sentence that is written twice is a fault."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in read_rows(output, "explanations") if (output / "explanations").exists() else []:
        if row["strategy"] == strategy:
            for entry in row["explanations"]:
                place = row["row_key"], entry["sentence"]
                assert place not in found
                found[place] = {**row, **entry}
    return found


@pytest.fixture
def model(serve: Serve, tmp_path: Path) -> Callable[..., tuple[Server, Path]]:
    """Start a scripted server, and write a job file that names it."""

    def start(reply: Callable[[dict[str, Any]], Reply] = explains, **more: Any) -> tuple[Server, Path]:
        server = serve(reply)
        settings = {"kind": "server", "base_url": server.url, "retries": 2, **more.pop("engine", {})}
        explainer = {"model": "m", "engine": settings, **more}
        config = write_job(tmp_path / "job.yaml", escalation={"explainer": explainer}, runtime={"wait_minutes": 0})
        return server, config

    return start
