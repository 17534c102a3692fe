"""How Ray is joined."""

from pathlib import Path

import pytest

from ragassay.jobs.config.job import Job
from ragassay.pipeline.errors import OutputError
from tests.jobs.conftest import here, write_job
from tests.raises import EXAMPLE, fails


@pytest.mark.parametrize("command", ["run", "score", "fit", "finalize", "escalate"])
def test_the_address_of_the_command_line_goes_before_the_job_files(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def job(job: Job, *_: object, **__: object) -> None:
        seen.append(job.runtime.ray_address)
        raise OutputError(EXAMPLE, text="far enough")

    monkeypatch.setattr(f"ragassay.jobs.run.{command}_job", job)
    config = write_job(
        tmp_path / "job.yaml",
        members={"slms": [], "detectors": [{"name": "a", "kind": "novelty"}]},
        runtime={"ray_address": "of:1"},
    )
    places = ["in", "out"] if command in ("run", "score") else ["out"]
    done = here(command, *places, "--config", config)
    fails(done, EXAMPLE.code)
    assert seen == ["of:1"]
