"""A job on a running Ray cluster exports metrics for Prometheus."""

import contextlib
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import ray.util

from ragassay.jobs.runtime.metrics import COUNTERS
from tests.conftest import example_rows, free_port, write_logs
from tests.jobs.conftest import environment, manifest, ragassay, write_job
from tests.raises import fails

pytestmark = pytest.mark.soak


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Address and metrics URL of a head node with four logical CPUs."""
    port, metrics = free_port(), free_port()
    script = Path(sys.executable).with_name("ray")
    command: list[str | Path] = [
        script,
        "start",
        "--head",
        "--block",
        f"--port={port}",
        "--num-cpus=4",
        f"--metrics-export-port={metrics}",
    ]
    command += ["--include-dashboard=false", "--disable-usage-stats"]
    with (tmp_path / "ray.log").open("wb") as log:
        env = environment(RAY_metrics_report_interval_ms="500", PYTHONPATH=str(Path(__file__).parents[2]))
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while "Ray runtime started" not in (tmp_path / "ray.log").read_text():
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "ray.log").read_text()
            time.sleep(0.2)
        node = ray.util.get_node_ip_address()
        yield f"{node}:{port}", f"http://{node}:{metrics}/metrics"
    finally:
        processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for child in processes:  # a graceful stop takes half a minute
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(processes, timeout=20)


def read_counters(url: str) -> dict[str, float]:
    """Read the job's counters of the SLM `tiny` and its stage, summed over other tags."""
    text = urllib.request.urlopen(url, timeout=10).read().decode()
    counters: dict[str, float] = {}
    for name, tags, value in re.findall(r"^(?:ray_)?(ragassay_\w+?)(?:_total)?\{(.*)\} (\S+)$", text, flags=re.MULTILINE):
        if 'slm="tiny"' in tags or 'stage="tiny"' in tags:
            counters[name] = counters.get(name, 0.0) + float(value)
    return counters


def test_metrics_of_a_cluster_equal_the_usage_in_the_manifest(
    cluster: tuple[str, str], tiny_model: str, tmp_path: Path
) -> None:
    address, metrics = cluster
    logs = write_logs(tmp_path / "logs.parquet", example_rows(200), row_group_size=50)
    slm = {"name": "tiny", "model": tiny_model, "max_model_len": 1024}
    config = write_job(tmp_path / "job.yaml", members={"slms": [slm]}, runtime={"ray_address": address, "block_mib": 0.02})
    refused = ragassay("run", logs, tmp_path / "out", "--config", config, env={"RAY_AUTH_MODE": "disabled"})
    fails(refused, "ray.no-cluster")
    result = ragassay("run", logs, tmp_path / "out", "--config", config, env={"RAY_AUTH_MODE": "token"})
    assert result.returncode == 0, result.stdout + result.stderr
    usage = manifest(tmp_path / "out")["runs"][-1]["usage"]["tiny"]
    expected = {
        "ragassay_tokens_computed": usage["tokens_computed"],
        "ragassay_tokens_reused": usage["tokens_reused"],
        "ragassay_engine_busy_seconds": usage["engine_seconds"],
        "ragassay_rows": 200,
    }
    deadline = time.monotonic() + 30
    while (counters := read_counters(metrics)) != pytest.approx({**counters, **expected}) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert set(counters) == set(COUNTERS) and usage["tokens_reused"] > 0
    assert {name: counters[name] for name in expected} == pytest.approx(expected)
