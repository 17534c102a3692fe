"""Publishing beside a run: neither waits for the other, and what is sent in the end is what stands in `scored/`."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.integrations.publish.state import LOCK
from ragassay.jobs.output import snapshot as snapshots
from ragassay.jobs.output.lock import lock_output
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.jobs.storage.folder import open_folder
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from tests.jobs.conftest import write_job
from tests.jobs.integrations.publish.conftest import Serve
from tests.jobs.integrations.publish.outputs import LATER, row, write_output
from tests.jobs.integrations.publish.test_publish import publish
from tests.raises import fails
from tests.tool_servers import Langfuse

PLACE = "dt=2026-11-20"


def test_attack_verdicts_are_sent_while_a_run_holds_the_lock(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {PLACE: [row("a", SUPPORTED)]}), Langfuse()
    tool = serve(there.tool())
    with lock_output(open_folder(str(output)), "run"):
        assert publish(output, tool.url).returncode == 0
    assert set(there.named()) == {"a"}
    job = write_job(tmp_path / "job.yaml", runtime={"wait_minutes": 0})
    with lock_output(open_folder(str(output)), "publish", name=LOCK):
        done = publish(output, tool.url, "--config", str(job))
    fails(done, "output.locked", "`ragassay publish`")


def test_attack_verdicts_that_a_run_replaces_while_they_are_sent_are_sent_again(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, there = write_output(tmp_path, {PLACE: [row("a", SUPPORTED), row("b", SUPPORTED)]}), Langfuse()
    tool = serve(there.tool())
    monkeypatch.setattr(snapshots, "PAUSE_SECONDS", 0.0)
    read, times = ScoredDataset.read_rows, []

    def overtaken(*arguments: Any) -> Any:
        times.append(1)
        yield from read(*arguments)
        if len(times) == 1:
            write_output(tmp_path, {PLACE: [row("a", SUPPORTED), row("b", HALLUCINATED)]}, LATER)

    monkeypatch.setattr(ScoredDataset, "read_rows", overtaken)
    done = publish(output, tool.url)
    assert done.returncode == 0, done.stderr
    assert {name: score["value"] for name, score in there.named().items()} == {"a": SUPPORTED, "b": HALLUCINATED}
    assert len(times) == 2 and publish(output, tool.url).returncode == 0 and len(times) == 2
