"""`explain` through real Ray, with vLLM in the job and behind its own server; and killed in the middle."""

import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragassay.pipeline.explain.categories import CATEGORIES
from tests.chat_server import Reply
from tests.jobs.conftest import here, manifest, ragassay, start, wait_for, write_job

from .conftest import asked, explains, flags, outcomes
from .test_explain import Model

pytestmark = pytest.mark.slow
KINDS = {category.name for category in CATEGORIES}


def check(output: Path, found: dict[tuple[int, int], dict[str, Any]]) -> None:
    """Structured output holds: an answer that ended is one of the form, whatever a model of this size says in it."""
    statuses = Counter(entry["status"] for entry in found.values())
    assert set(statuses) <= {"ok", "unreadable"}, statuses
    for entry in found.values():
        assert re.match(r'\s*\{\s*"evidence"\s*:\s*"', entry["answer"])  # as the schema has it, though it may be cut off
        assert entry["prompt_tokens"] > 1000 and 0 < entry["completion_tokens"] <= 120
        if entry["status"] == "ok":
            assert set(json.loads(entry["answer"])) == {"evidence", "reason", "category"} and entry["category"] in KINDS
            quote = json.loads(entry["answer"])["evidence"].strip()
            assert (entry["evidence"] is not None) == (bool(quote) and entry["error"] is None)
        else:
            assert entry["error"] == "the answer was cut off after 120 tokens"
    run = manifest(output)["explained"][-1]
    assert run["asked"] == len(found) and run["prompt_tokens"] == sum(e["prompt_tokens"] for e in found.values())


@pytest.mark.engine
def test_a_pool_in_the_ray_job(flagged: Path, tmp_path: Path) -> None:
    engine = {"kind": "vllm", "max_model_len": 4096}
    config = write_job(tmp_path / "job.yaml", explain={"engine": engine, "max_tokens": 120})
    done = ragassay("explain", flagged, "--config", config, "--sentences", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    found = outcomes(flagged, "categorized")
    assert 3 <= len(found) <= 4 and found.keys() <= flags(flagged)
    check(flagged, found)


@pytest.mark.engine
@pytest.mark.usefixtures("without_ray", "plan_here")
def test_vllms_own_server(flagged: Path, tmp_path: Path, vllm_server: tuple[str, Callable[[], None]]) -> None:
    url, wait = vllm_server
    engine = {"kind": "server", "base_url": url}
    config = write_job(tmp_path / "job.yaml", explain={"model": "slm", "engine": engine, "max_tokens": 120})
    wait()
    done = here("explain", flagged, "--config", config, "--sentences", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    check(flagged, outcomes(flagged, "categorized"))


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
    assert run["asked"] == len(answered) and run["dollars"] == pytest.approx(960 * len(answered) / 1_000_000)
    assert not kept.exists() or not list(kept.iterdir())
    assert here("explain", flagged, "--config", config).returncode == 0 and len(answered) == len(flags(flagged))
