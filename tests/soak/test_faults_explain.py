"""`explain` with real Ray resumes after it was killed."""

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Reply
from tests.jobs.conftest import invoke, manifest, ragassay, start, wait_for
from tests.jobs.second_pass.explain.conftest import read_explanations, read_flags, read_question, reply_honestly
from tests.jobs.second_pass.explain.test_explain import Model

pytestmark = pytest.mark.soak


def test_a_resumed_explain_sends_no_question_twice(flagged: Path, model: Model, tmp_path: Path) -> None:
    """The server answers forty questions, then none until the driver is dead."""
    dead = threading.Event()
    answered: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        if len(answered) >= 40 and not dead.is_set():
            dead.wait(60)
            return 503, {"error": {"message": "gone"}}
        answered.append(json.dumps(read_question(body)))
        return reply_honestly(body)

    _, config = model(reply, price={"input": 1.0, "output": 1.0})
    first = start("explain", flagged, "--config", config, log=tmp_path / "first.log")
    answers_folder = flagged / "explanations" / "_answers" / "categorized"
    wait_for(lambda: len(answered) >= 40 and answers_folder.exists() and len(list(answers_folder.glob("*.json"))) >= 40, first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    dead.set()
    done = ragassay("explain", flagged, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(read_explanations(flagged, "categorized")) == read_flags(flagged)
    assert max(Counter(answered).values()) == 1 and len(answered) == len(read_flags(flagged))
    (run,) = manifest(flagged)["explained"]
    assert run["questions"] == len(answered) and run["dollars"] == pytest.approx(960 * len(answered) / 1_000_000)
    assert not answers_folder.exists() or not list(answers_folder.iterdir())
    assert invoke("explain", flagged, "--config", config).returncode == 0 and len(answered) == len(read_flags(flagged))
