"""`explain` with real Ray, and vLLM in the job or as a server."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragassay.pipeline.reasoning.categories import CATEGORIES
from tests.jobs.conftest import invoke, manifest, write_job
from tests.jobs.second_pass.explain.conftest import read_explanations, read_flags

pytestmark = pytest.mark.slow
CATEGORY_NAMES = {category.name for category in CATEGORIES}


def check_answers(output: Path, entries: dict[tuple[int, int], dict[str, Any]]) -> None:
    """Check that every complete answer matches the schema; the tiny model's content is arbitrary."""
    statuses = Counter(entry["status"] for entry in entries.values())
    assert set(statuses) <= {"ok", "unreadable"}, statuses
    for entry in entries.values():
        assert re.match(r'\s*\{\s*"evidence"\s*:\s*"', entry["answer"])  # the answer may be cut off
        assert entry["prompt_tokens"] > 1000 and 0 < entry["completion_tokens"] <= 24
        if entry["status"] == "ok":
            assert (
                set(json.loads(entry["answer"])) == {"evidence", "reason", "category"} and entry["category"] in CATEGORY_NAMES
            )
            quote = json.loads(entry["answer"])["evidence"].strip()
            assert (entry["evidence"] is not None) == (bool(quote) and entry["error"] is None)
        else:
            assert entry["error"] == "the answer was cut off after 24 tokens"
    run = manifest(output)["explained"][-1]
    assert run["questions"] == len(entries) and run["prompt_tokens"] == sum(
        entry["prompt_tokens"] for entry in entries.values()
    )


@pytest.mark.engine
@pytest.mark.usefixtures("vllm_server")  # starts in the background
def test_vllm_in_the_ray_job(shared_ray_session: None, flagged: Path, tmp_path: Path) -> None:
    engine = {"kind": "vllm", "max_model_len": 4096}
    config = write_job(tmp_path / "job.yaml", escalation={"explainer": {"engine": engine, "max_tokens": 24}})
    done = invoke("explain", flagged, "--config", config, "--sample", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    entries = read_explanations(flagged, "categorized")
    assert 2 <= len(entries) <= 3 and entries.keys() <= read_flags(flagged)
    check_answers(flagged, entries)


@pytest.mark.engine
@pytest.mark.usefixtures("without_ray")
def test_vllm_as_a_server(flagged: Path, tmp_path: Path, vllm_server: tuple[str, Callable[[], None]]) -> None:
    url, wait = vllm_server
    engine = {"kind": "server", "base_url": url}
    config = write_job(tmp_path / "job.yaml", escalation={"explainer": {"model": "slm", "engine": engine, "max_tokens": 24}})
    wait()
    done = invoke("explain", flagged, "--config", config, "--sample", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    check_answers(flagged, read_explanations(flagged, "categorized"))
