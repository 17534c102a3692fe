"""A job on a Ray cluster of two nodes: its actors on both, a node that is killed in mid-run, one that is added."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import REPO, free_port
from tests.jobs.conftest import environment, read_rows, wait_for, write_job
from tests.soak.fault_runs import PATIENCE, Tries, end_all, finished, ids, launched, two_days

pytestmark = pytest.mark.soak

ROWS = 1200
MORE = 6000
"""Rows of a run that goes on for so long that a node that is added gets work."""
ENV = {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(REPO), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}


class Nodes:
    """The cluster, in a process of its own."""

    def __init__(self, folder: Path, *sizes: int, dashboard: int = 0) -> None:
        arguments = [*map(str, sizes), *([str(dashboard)] if dashboard else [])]
        self._log = (folder / "cluster.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.two_nodes", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment(**ENV),
            cwd=REPO,
            start_new_session=True,
        )
        self.address = self._answer()
        assert ":" in self.address, (folder / "cluster.log").read_text()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def do(self, what: str) -> None:
        """`add` or `kill` a node."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        assert self._answer() == "done"

    def workers(self, kind: str) -> dict[int, int]:
        """Process -> its node (the process of its raylet), of workers whose name has this in it."""
        found = {}
        for one in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = (one.cmdline() or [""])[0]  # a child of a worker has its name for a moment
                if line.startswith("ray::") and kind in line and psutil.Process(one.ppid()).name() == "raylet":
                    found[one.pid] = one.ppid()
            except psutil.Error:
                continue
        return found

    def end(self) -> None:
        """End all of it."""
        end_all([*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)])
        self._log.close()


@contextmanager
def cluster(folder: Path, *sizes: int, dashboard: int = 0) -> Iterator[Nodes]:
    nodes = Nodes(folder, *sizes, dashboard=dashboard)
    try:
        yield nodes
    finally:
        nodes.end()


def job_file(folder: Path, model: str, low: int, high: int, address: str | None = None) -> Path:
    replicas = {"min": low, "max": high, "num_cpus": 1}
    slm: dict[str, Any] = {"name": "tiny", "model": model, "engine": "transformers", "dtype": "float32", "threads": 1}
    return write_job(
        folder / "job.yaml",
        members={"slms": [{**slm, "max_model_len": 1024, "replicas": replicas}]},
        runtime={"block_mib": 0.01, "ray_address": address},
    )


def committed(output: Path) -> int:
    return sum(".pending." not in path.name for path in output.glob("_checkpoint/*.parquet"))


def rows_of(output: Path) -> list[str]:
    return [row["row_id"] for row in read_rows(output) if row["status"] == "ok"]


def test_actors_on_both_nodes_and_one_node_killed(tiny_model: str, tmp_path: Path) -> None:
    logs, output = two_days(tmp_path, ROWS), tmp_path / "out"
    spread, killed = Tries("two nodes, ragassay run"), Tries("a node killed in mid-run")
    with cluster(tmp_path, 3, 3) as nodes:
        job = job_file(tmp_path, tiny_model, 2, 2, nodes.address)
        run = launched("run", logs, output, "--config", job, log=tmp_path / "run.log", **ENV)
        seen: dict[int, int] = {}
        wait_for(lambda: seen.update(nodes.workers("StageActor")) or committed(output) > 5, run, PATIENCE)
        spread.notes.append(f"{len(seen)} replicas on {len(set(seen.values()))} nodes")
        before = committed(output)
        nodes.do("kill")
        assert committed(output) < ROWS / 10 and run.poll() is None
        code = run.wait(timeout=PATIENCE)
        killed.notes.append(f"after {before} blocks")
        killed.count(ids(ROWS), rows_of(output), well=code == 0)
        assert code == 0, (tmp_path / "run.log").read_text()
        spread.count(ids(ROWS), rows_of(output), well=len(set(seen.values())) == 2)
    spread.done()
    killed.done()


def test_a_node_is_added_in_mid_run(tiny_model: str, tmp_path: Path) -> None:
    logs, output = two_days(tmp_path, MORE), tmp_path / "out"
    tries = Tries("a node added in mid-run")
    with cluster(tmp_path, 2, 0) as nodes:
        job = job_file(tmp_path, tiny_model, 1, 3, nodes.address)
        run = launched("run", logs, output, "--config", job, log=tmp_path / "run.log", **ENV)
        wait_for(lambda: committed(output) > 2, run, PATIENCE)
        nodes.do("add")
        seen: dict[int, int] = {}
        while run.poll() is None:
            seen.update(nodes.workers("MapBatches") | nodes.workers("StageActor"))
            time.sleep(0.05)
        assert run.returncode == 0, (tmp_path / "run.log").read_text()
        tries.notes.append(f"workers on {len(set(seen.values()))} nodes")
        tries.count(ids(MORE), rows_of(output), well=len(set(seen.values())) == 2)
    tries.done()


def test_as_a_job_that_is_submitted(tiny_model: str, tmp_path: Path) -> None:
    logs, job, output = two_days(tmp_path, ROWS // 4), job_file(tmp_path, tiny_model, 2, 2, "auto"), tmp_path / "out"
    tries = Tries("two nodes, ray job submit")
    port = free_port()
    with cluster(tmp_path, 3, 3, dashboard=port):
        ray = Path(sys.executable).with_name("ray")
        entry = [sys.executable, "-m", "ragassay", "run", logs, output, "--config", job]
        done = subprocess.run(
            [ray, "job", "submit", "--address", f"http://127.0.0.1:{port}", "--", *map(str, entry)],
            env=environment(**ENV), capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0 and "succeeded" in done.stdout, done.stdout + done.stderr
        tries.count(ids(ROWS // 4), rows_of(output), well=True)
    tries.done()


def test_without_an_address_a_cluster_that_runs_is_left_alone(tiny_model: str, tmp_path: Path) -> None:
    logs, job = two_days(tmp_path, 20), job_file(tmp_path, tiny_model, 1, 1)
    with cluster(tmp_path, 2, 0) as nodes:
        env = {**ENV, "RAY_ADDRESS": nodes.address}
        assert finished("run", logs, tmp_path / "out", "--config", job, **env).returncode == 0
        assert not nodes.workers("StageActor")
