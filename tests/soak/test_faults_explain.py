"""`explain` through real Ray, killed in the middle, and run again."""

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Reply
from tests.jobs.conftest import here, manifest, ragassay, start, wait_for
from tests.jobs.second_pass.explain.conftest import asked, explains, flags, outcomes
from tests.jobs.second_pass.explain.test_explain import Model

pytestmark = pytest.mark.soak


def test_killed_and_run_again_it_asks_no_question_twice(flagged: Path, model: Model, tmp_path: Path) -> None:
    """The server answers forty questions and then holds its tongue until the driver is dead."""
    dead = threading.Event()
    answered: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        if len(answered) >= 40 and not dead.is_set():
            dead.wait(60)
            return 503, {"error": {"message": "gone"}}
        answered.append(json.dumps(asked(body)))
        return explains(body)

    _, config = model(reply, price={"input": 1.0, "output": 1.0})
    first = start("explain", flagged, "--config", config, log=tmp_path / "first.log")
    kept = flagged / "explanations" / "_answers" / "categorized"
    wait_for(lambda: len(answered) >= 40 and kept.exists() and len(list(kept.glob("*.json"))) >= 40, first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    dead.set()
    done = ragassay("explain", flagged, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(outcomes(flagged, "categorized")) == flags(flagged)
    assert max(Counter(answered).values()) == 1 and len(answered) == len(flags(flagged))
    (run,) = manifest(flagged)["explained"]
    assert run["questions"] == len(answered) and run["dollars"] == pytest.approx(960 * len(answered) / 1_000_000)
    assert not kept.exists() or not list(kept.iterdir())
    assert here("explain", flagged, "--config", config).returncode == 0 and len(answered) == len(flags(flagged))
