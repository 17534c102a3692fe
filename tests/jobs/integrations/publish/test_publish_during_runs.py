"""Test publishing during a run: neither waits for the other, and in the end the tool has the verdicts of `scored/`."""

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

PARTITION = "dt=2026-11-20"


def test_attack_verdicts_are_sent_while_a_run_holds_the_lock(tmp_path: Path, serve: Serve) -> None:
    output, server = write_output(tmp_path, {PARTITION: [row("a", SUPPORTED)]}), Langfuse()
    tool = serve(server.tool())
    with lock_output(open_folder(str(output)), "run"):
        assert publish(output, tool.url).returncode == 0
    assert set(server.named()) == {"a"}
    job = write_job(tmp_path / "job.yaml", runtime={"wait_minutes": 0})
    with lock_output(open_folder(str(output)), "publish", name=LOCK):
        result = publish(output, tool.url, "--config", str(job))
    fails(result, "output.locked", "`ragassay publish`")


def test_attack_verdicts_that_a_run_replaces_while_they_are_sent_are_sent_again(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, server = write_output(tmp_path, {PARTITION: [row("a", SUPPORTED), row("b", SUPPORTED)]}), Langfuse()
    tool = serve(server.tool())
    monkeypatch.setattr(snapshots, "PAUSE_SECONDS", 0.0)
    read_rows, calls = ScoredDataset.read_rows, []

    def rows_replaced_meanwhile(*arguments: Any) -> Any:
        calls.append(1)
        yield from read_rows(*arguments)
        if len(calls) == 1:
            write_output(tmp_path, {PARTITION: [row("a", SUPPORTED), row("b", HALLUCINATED)]}, LATER)

    monkeypatch.setattr(ScoredDataset, "read_rows", rows_replaced_meanwhile)
    result = publish(output, tool.url)
    assert result.returncode == 0, result.stderr
    assert {name: score["value"] for name, score in server.named().items()} == {"a": SUPPORTED, "b": HALLUCINATED}
    assert len(calls) == 2 and publish(output, tool.url).returncode == 0 and len(calls) == 2
