"""How Ray is started, or joined."""

from pathlib import Path
from typing import Any

import pytest
import ray

from ragassay.jobs import ray_session, run
from ragassay.jobs.config import Job
from ragassay.pipeline.errors import ConfigError, OutputError
from tests.jobs.conftest import here, write_job


def test_ray_that_takes_too_long_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def init(**options: Any) -> None:
        tries.append(options["address"])
        if len(tries) < 3:
            raise Exception("The current node timed out during startup. This could happen because …")

    monkeypatch.setattr(ray, "init", init)
    ray_session.start_here(1)
    assert tries == ["local"] * 3
    monkeypatch.setattr(ray_session, "STARTS", 2)
    tries.clear()
    with pytest.raises(ConfigError, match="did not start on this machine within half a minute, 2 times"):
        ray_session.start_here(1)
    assert len(tries) == 2


def test_another_fault_of_the_start_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(RuntimeError, match="no such thing"):
        ray_session.start_here(1)


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
