"""`explain` through real Ray, with vLLM in the job and behind its own server."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragassay.pipeline.reasoning.categories import CATEGORIES
from tests.jobs.conftest import here, manifest, write_job
from tests.jobs.second_pass.explain.conftest import flags, outcomes

pytestmark = pytest.mark.slow
KINDS = {category.name for category in CATEGORIES}


def check(output: Path, found: dict[tuple[int, int], dict[str, Any]]) -> None:
    """Structured output holds: an answer that ended is one of the form, whatever a model of this size says in it."""
    statuses = Counter(entry["status"] for entry in found.values())
    assert set(statuses) <= {"ok", "unreadable"}, statuses
    for entry in found.values():
        assert re.match(r'\s*\{\s*"evidence"\s*:\s*"', entry["answer"])  # as the schema has it, though it may be cut off
        assert entry["prompt_tokens"] > 1000 and 0 < entry["completion_tokens"] <= 24
        if entry["status"] == "ok":
            assert set(json.loads(entry["answer"])) == {"evidence", "reason", "category"} and entry["category"] in KINDS
            quote = json.loads(entry["answer"])["evidence"].strip()
            assert (entry["evidence"] is not None) == (bool(quote) and entry["error"] is None)
        else:
            assert entry["error"] == "the answer was cut off after 24 tokens"
    run = manifest(output)["explained"][-1]
    assert run["questions"] == len(found) and run["prompt_tokens"] == sum(e["prompt_tokens"] for e in found.values())


@pytest.mark.engine
@pytest.mark.usefixtures("vllm_server")  # it starts meanwhile
def test_a_pool_in_the_ray_job(one_ray: None, flagged: Path, tmp_path: Path) -> None:
    engine = {"kind": "vllm", "max_model_len": 4096}
    config = write_job(tmp_path / "job.yaml", escalation={"explainer": {"engine": engine, "max_tokens": 24}})
    done = here("explain", flagged, "--config", config, "--sample", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    found = outcomes(flagged, "categorized")
    assert 2 <= len(found) <= 3 and found.keys() <= flags(flagged)
    check(flagged, found)


@pytest.mark.engine
@pytest.mark.usefixtures("without_ray")
def test_vllms_own_server(flagged: Path, tmp_path: Path, vllm_server: tuple[str, Callable[[], None]]) -> None:
    url, wait = vllm_server
    engine = {"kind": "server", "base_url": url}
    config = write_job(tmp_path / "job.yaml", escalation={"explainer": {"model": "slm", "engine": engine, "max_tokens": 24}})
    wait()
    done = here("explain", flagged, "--config", config, "--sample", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    check(flagged, outcomes(flagged, "categorized"))
