"""The address of the Ray cluster."""

from pathlib import Path

import pytest

from ragassay.jobs.config.job import Job
from ragassay.pipeline.errors import OutputError
from tests.jobs.conftest import invoke, write_job
from tests.raises import EXAMPLE, fails


@pytest.mark.parametrize("command", ["run", "score", "fit", "finalize", "escalate"])
def test_each_command_passes_on_the_address_in_the_job_file(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str | None] = []

    def record_address(job: Job, *_: object, **__: object) -> None:
        addresses.append(job.runtime.ray_address)
        raise OutputError(EXAMPLE, text="the run starts")

    monkeypatch.setattr(f"ragassay.jobs.run.{command}_job", record_address)
    config = write_job(
        tmp_path / "job.yaml",
        members={"slms": [], "detectors": [{"name": "a", "kind": "novelty"}]},
        runtime={"ray_address": "of:1"},
    )
    paths = ["in", "out"] if command in ("run", "score") else ["out"]
    done = invoke(command, *paths, "--config", config)
    fails(done, EXAMPLE.code)
    assert addresses == ["of:1"]
