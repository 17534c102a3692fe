"""Ray's raylet ends as it starts: it is started anew."""

import subprocess
from typing import Any

import psutil
import pytest
import ray
from ray._private import services

from ragassay.jobs.runtime import ray_start

pytestmark = pytest.mark.soak


def test_a_raylet_that_ends_as_it_starts_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    start = services.start_ray_process
    begun: list[tuple[str, subprocess.Popen[bytes]]] = []

    def once_killed(command: list[str], process_type: str, *arguments: Any, **more: Any) -> Any:
        first = not any(kind == "raylet" for kind, _ in begun)
        found = start(command, process_type, *arguments, **more)
        begun.append((process_type, found.process))
        if process_type == "raylet" and first:
            found.process.kill()
        return found

    monkeypatch.setattr(services, "start_ray_process", once_killed)
    ray_start.start_local_ray(1)
    try:
        kinds = [kind for kind, _ in begun]
        assert kinds.count("raylet") == kinds.count("gcs_server") == 2
        assert ray.is_initialized()
        again = kinds.index("gcs_server", kinds.index("raylet"))
        assert all(process.poll() is not None for _, process in begun[:again])
        assert all(psutil.pid_exists(process.pid) for _, process in begun[again:])
    finally:
        ray.shutdown()
