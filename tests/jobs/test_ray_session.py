"""How Ray is started, or joined."""

from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private import services

from ragassay.jobs import ray_session, run
from ragassay.jobs.config import Job
from ragassay.pipeline.errors import ConfigError, OutputError
from tests.jobs.conftest import here, write_job


def test_ray_that_takes_long_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def look(address: str, _: str) -> str:
        tries.append(address)
        if len(tries) < 3:
            raise RuntimeError("the node is not known yet")
        return "node"

    def init(**options: Any) -> None:
        assert options["address"] == "local" and services.get_node("here", "id") == "node"

    monkeypatch.setattr(services, "get_node", look)
    monkeypatch.setattr(ray, "init", init)
    ray_session.start_here(1)
    assert tries == ["here"] * 3 and services.get_node is look
    tries.clear()
    monkeypatch.setattr(ray_session, "START_SECONDS", 0)
    with pytest.raises(ConfigError, match="Ray did not start on this machine within"):
        ray_session.start_here(1)
    assert services.get_node is look


@pytest.mark.parametrize("command", ["run", "score", "fit", "finalize", "escalate"])
def test_the_address_of_the_command_line_goes_before_the_job_files(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def job(job: Job, *_: object, **__: object) -> None:
        seen.append(job.ray_address)
        raise OutputError("far enough")

    monkeypatch.setattr(run, f"{command}_job", job)
    config = write_job(tmp_path / "job.yaml", slms=[], detectors=[{"name": "a", "kind": "novelty"}], ray_address="of:1")
    places = ["in", "out"] if command in ("run", "score") else ["out"]
    for more in ([], ["--address", "other:2"]):
        done = here(command, *places, "--config", config, *more)
        assert done.returncode == 1 and "far enough" in done.stderr, done.stderr
    assert seen == ["of:1", "other:2"]
