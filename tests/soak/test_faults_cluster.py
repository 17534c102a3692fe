"""A job on a Ray cluster of two nodes: actors on both nodes, a node killed during a run, a node added during a run."""

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
from tests.soak.fault_runs import PATIENCE, Tries, kill_all, launch, list_ids, run_command, write_two_days

pytestmark = pytest.mark.soak

ROWS = 1200
MORE_ROWS = 6000
"""Rows of a run that takes long enough for an added node to get work."""

AGENT_SECONDS = 60
"""Time that a node has until it accepts jobs."""

ENV = {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(REPO), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}


class Nodes:
    """Cluster in a separate process."""

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

    def do(self, command: str) -> None:
        """Send a command: `add` or `kill` a node."""
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)
        assert self._answer() == "done"

    def workers(self, kind: str) -> dict[int, int]:
        """Map workers with `kind` in their name to their node: process id -> process id of the raylet."""
        nodes_of_workers = {}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = (process.cmdline() or [""])[0]  # a child of a worker briefly has its name
                if line.startswith("ray::") and kind in line and psutil.Process(process.ppid()).name() == "raylet":
                    nodes_of_workers[process.pid] = process.ppid()
            except psutil.Error:
                continue
        return nodes_of_workers

    def end(self) -> None:
        """End the cluster."""
        kill_all([*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)])
        self._log.close()


@contextmanager
def start_cluster(folder: Path, *sizes: int, dashboard: int = 0) -> Iterator[Nodes]:
    nodes = Nodes(folder, *sizes, dashboard=dashboard)
    try:
        yield nodes
    finally:
        nodes.end()


def write_model_job(folder: Path, model: str, low: int, high: int, address: str | None = None) -> Path:
    replicas = {"min": low, "max": high, "num_cpus": 1}
    slm: dict[str, Any] = {"name": "tiny", "model": model, "engine": "transformers", "dtype": "float32", "threads": 1}
    return write_job(
        folder / "job.yaml",
        members={"slms": [{**slm, "max_model_len": 1024, "replicas": replicas}]},
        runtime={"block_mib": 0.01, "ray_address": address},
    )


def count_committed(output: Path) -> int:
    return sum(".pending." not in path.name for path in output.glob("_checkpoint/*.parquet"))


def list_scored_ids(output: Path) -> list[str]:
    return [row["row_id"] for row in read_rows(output) if row["status"] == "ok"]


def test_a_run_on_two_nodes_survives_the_death_of_one(tiny_model: str, tmp_path: Path) -> None:
    logs, output = write_two_days(tmp_path, ROWS), tmp_path / "out"
    spread, killed = Tries("two nodes, ragassay run"), Tries("a node killed in mid-run")
    with start_cluster(tmp_path, 3, 3) as nodes:
        job = write_model_job(tmp_path, tiny_model, 2, 2, nodes.address)
        run = launch("run", logs, output, "--config", job, log=tmp_path / "run.log", **ENV)
        seen: dict[int, int] = {}
        wait_for(lambda: seen.update(nodes.workers("StageActor")) or count_committed(output) > 5, run, PATIENCE)
        spread.notes.append(f"{len(seen)} replicas on {len(set(seen.values()))} nodes")
        before = count_committed(output)
        nodes.do("kill")
        assert count_committed(output) < ROWS / 10 and run.poll() is None
        code = run.wait(timeout=PATIENCE)
        killed.notes.append(f"after {before} blocks")
        killed.count(list_ids(ROWS), list_scored_ids(output), well=code == 0)
        assert code == 0, (tmp_path / "run.log").read_text()
        spread.count(list_ids(ROWS), list_scored_ids(output), well=len(set(seen.values())) == 2)
    spread.done()
    killed.done()


def test_a_node_added_during_a_run_gets_work(tiny_model: str, tmp_path: Path) -> None:
    logs, output = write_two_days(tmp_path, MORE_ROWS), tmp_path / "out"
    tries = Tries("a node added in mid-run")
    with start_cluster(tmp_path, 2, 0) as nodes:
        job = write_model_job(tmp_path, tiny_model, 1, 3, nodes.address)
        run = launch("run", logs, output, "--config", job, log=tmp_path / "run.log", **ENV)
        wait_for(lambda: count_committed(output) > 2, run, PATIENCE)
        nodes.do("add")
        seen: dict[int, int] = {}
        while run.poll() is None:
            seen.update(nodes.workers("MapBatches") | nodes.workers("StageActor"))
            time.sleep(0.05)
        assert run.returncode == 0, (tmp_path / "run.log").read_text()
        tries.notes.append(f"workers on {len(set(seen.values()))} nodes")
        tries.count(list_ids(MORE_ROWS), list_scored_ids(output), well=len(set(seen.values())) == 2)
    tries.done()


def test_a_submitted_job_runs_on_the_cluster(tiny_model: str, tmp_path: Path) -> None:
    logs, job, output = (
        write_two_days(tmp_path, ROWS // 4),
        write_model_job(tmp_path, tiny_model, 2, 2, "auto"),
        tmp_path / "out",
    )
    tries = Tries("two nodes, ray job submit")
    port = free_port()
    with start_cluster(tmp_path, 3, 3, dashboard=port):
        ray = Path(sys.executable).with_name("ray")
        command = [sys.executable, "-m", "ragassay", "run", logs, output, "--config", job]
        submit = [str(ray), "job", "submit", "--address", f"http://127.0.0.1:{port}", "--", *map(str, command)]
        for _ in range(AGENT_SECONDS):
            result = subprocess.run(
                submit, env=environment(**ENV), capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path
            )
            if "No available agent" not in result.stderr:
                break
            time.sleep(1)
        assert result.returncode == 0 and "succeeded" in result.stdout, result.stdout + result.stderr
        tries.count(list_ids(ROWS // 4), list_scored_ids(output), well=True)
    tries.done()


def test_a_run_without_an_address_does_not_use_a_running_cluster(tiny_model: str, tmp_path: Path) -> None:
    logs, job = write_two_days(tmp_path, 20), write_model_job(tmp_path, tiny_model, 1, 1)
    with start_cluster(tmp_path, 2, 0) as nodes:
        env = {**ENV, "RAY_ADDRESS": nodes.address}
        assert run_command("run", logs, tmp_path / "out", "--config", job, **env).returncode == 0
        assert not nodes.workers("StageActor")
