"""An actor is killed during a run: no row is lost or scored twice."""

import threading
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.chat_server import Reply, Serve, completion
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import manifest, read_rows, start, wait_for, write_job

pytestmark = pytest.mark.soak
ROWS = 60


def test_a_killed_actor_is_restarted_and_its_rows_are_scored_once(serve: Serve, tmp_path: Path) -> None:
    """The server stops answering until the actor that calls it is dead."""
    killed = threading.Event()
    prompts: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        prompts.append(body["messages"][-1]["content"])
        if len(prompts) > ROWS:
            killed.wait(120)
        return completion({"Yes": 0.3 + len(body["messages"][-1]["content"]) % 7 / 20, "No": 0.3})

    engine = {"kind": "server", "base_url": serve(reply).url, "concurrency": 2}
    slm = {"name": "judge", "model": "m", "prompt": "{{ context | join }} {{ sentence }} Yes or No?", "engine": engine}
    logs = write_logs(tmp_path / "logs" / "a.parquet", example_rows(ROWS), row_group_size=10)
    job = write_job(tmp_path / "job.yaml", members={"slms": [slm]}, runtime={"block_mib": 0.002, "local_rows": 0})
    run = start("run", logs.parent, tmp_path / "out", "--config", job, log=tmp_path / "run.log")
    wait_for(lambda: len(prompts) > ROWS, run)
    (actor,) = [p for p in psutil.Process(run.pid).children(recursive=True) if "StageActor" in " ".join(p.cmdline())]
    actor.kill()
    psutil.wait_procs([actor], timeout=20)
    killed.set()
    assert run.wait(timeout=300) == 0, (tmp_path / "run.log").read_text()
    rows = read_rows(tmp_path / "out")
    assert [row["row_id"] for row in rows] == [f"a.parquet#{i + 1}" for i in range(ROWS)] and {r["status"] for r in rows} == {
        "ok"
    }
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in (tmp_path / "out" / "raw").rglob("*.parquet")) == ROWS
    assert manifest(tmp_path / "out")["runs"][-1]["rows"] == {"in": ROWS, "scored": ROWS, "failed": 0, "skipped": 0}
