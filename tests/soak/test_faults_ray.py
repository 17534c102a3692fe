"""Ray is started again if its raylet dies at start."""

import subprocess
import sys
from typing import Any
from unittest.mock import patch

import psutil
import pytest
import ray
from ray._private import services

from ragassay.jobs.runtime import ray_start
from tests.conftest import REPO

pytestmark = pytest.mark.soak


def test_ray_is_started_again_if_its_raylet_dies_at_start() -> None:
    """In a separate process, because Ray may already run in this one."""
    code = "from tests.soak.test_faults_ray import start_with_a_killed_raylet; start_with_a_killed_raylet()"
    subprocess.run([sys.executable, "-c", code], cwd=REPO, check=True)


def start_with_a_killed_raylet() -> None:
    start = services.start_ray_process
    started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def kill_first_raylet(command: list[str], process_type: str, *arguments: Any, **more: Any) -> Any:
        first = not any(kind == "raylet" for kind, _ in started)
        info = start(command, process_type, *arguments, **more)
        started.append((process_type, info.process))
        if process_type == "raylet" and first:
            info.process.kill()
        return info

    with patch.object(services, "start_ray_process", kill_first_raylet):
        ray_start.start_local_ray(1)
    try:
        kinds = [kind for kind, _ in started]
        assert kinds.count("raylet") == kinds.count("gcs_server") == 2
        assert ray.is_initialized()
        again = kinds.index("gcs_server", kinds.index("raylet"))
        assert all(process.poll() is not None for _, process in started[:again])
        assert all(psutil.pid_exists(process.pid) for _, process in started[again:])
    finally:
        ray.shutdown()
