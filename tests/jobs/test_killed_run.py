"""A run whose driver is killed, and then one of its actors."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, manifest, read_rows, start, tiny, wait_for, write_job
from tests.raises import fails

TOTAL = 1000
"""Rows of the run, of two days."""


def committed(output: Path) -> int:
    files = [f for f in (output / "_checkpoint").glob("*.parquet") if ".pending." not in f.name]
    return sum(pq.ParquetFile(f).metadata.num_rows for f in files)


def check_killed(slm: dict[str, Any], tmp_path: Path) -> None:
    """Kill the driver, run again, kill the actor: nothing is lost, nothing scored twice, rows stand in order, progress is told.

    Args:
        slm: The one SLM, named `tiny`.
        tmp_path: An empty folder.
    """
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(TOTAL // 2))
    write_logs(tmp_path / "logs" / "dt=2" / "a.parquet", example_rows(TOTAL // 2, start=TOTAL))
    output = tmp_path / "out"
    config = write_job(tmp_path / "job.yaml", slms=[slm], block_mib=0.02)
    first = start("run", tmp_path / "logs", output, "--config", config, log=tmp_path / "first.log")
    workers = []
    try:
        wait_for(lambda: committed(output) > 150, first)
        workers = psutil.Process(first.pid).children(recursive=True)
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        for worker in workers:  # what the driver started and can no longer end
            if worker.is_running():
                worker.kill()
    psutil.wait_procs(workers, timeout=20)
    saved = committed(output)
    assert 150 < saved < TOTAL
    assert manifest(output)["runs"][-1]["finished"] is None
    write_logs(tmp_path / "other" / "dt=3" / "a.parquet", example_rows(1))
    for args in (("run", tmp_path / "other", output), ("finalize", output)):
        fails(here(*args, "--config", config), "output.unfinished-run")

    second = start("run", tmp_path / "logs", output, "--config", config, "--log-format", "json", log=tmp_path / "second.log")
    wait_for(lambda: committed(output) > saved + 100, second)
    victims = [p for p in psutil.Process(second.pid).children(recursive=True) if "StageActor" in " ".join(p.cmdline())]
    assert len(victims) == 1
    victims[0].kill()
    assert committed(output) < TOTAL
    assert second.wait(timeout=300) == 0, (tmp_path / "second.log").read_text()
    rows = read_rows(output)
    assert {r["status"] for r in rows} == {"ok"}
    assert [r["row_id"] for r in rows] == [f"dt={d}/a.parquet#{i}" for d in (1, 2) for i in range(TOTAL // 2)]  # in order
    run = manifest(output)["runs"][-1]
    assert run["resumed"] == saved and run["rows"]["scored"] == TOTAL
    # Counted: raw files carry the id of the write that made them; the second write made exactly the rest.
    by_write: dict[str, int] = {}
    for file in (output / "raw").rglob("*.parquet"):
        write = file.name.split("_")[0]
        by_write[write] = by_write.get(write, 0) + pq.ParquetFile(file).metadata.num_rows
    assert sorted(by_write.values()) == sorted([saved, TOTAL - saved])
    # Told: from where the first run stopped, up to the last sentence, though what the victim had in hand was done again.
    lines = [json.loads(line) for line in (tmp_path / "second.log").read_text().splitlines() if line.startswith("{")]
    told = [line for line in lines if line["stage"] == "tiny"]
    known = [(line["done"], line["total"]) for line in told if line["total"] is not None]
    assert [done for done, _ in known] == sorted(done for done, _ in known) and all(done <= of for done, of in known)
    assert known[-1][0] == known[-1][1] and known[0][0] > 0
    assert {"loading", "scoring"} <= {line["phase"] for line in told} and any(line["tokens_per_second"] for line in told)
    assert (lines[-1]["phase"], lines[-1]["done"]) == ("done", run["sentences"])


@pytest.mark.slow
def test_a_killed_driver_and_then_a_killed_actor_lose_nothing_and_score_nothing_twice(tiny_model: str, tmp_path: Path) -> None:
    check_killed(tiny(tiny_model), tmp_path)
