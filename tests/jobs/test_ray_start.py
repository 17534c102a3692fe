"""How Ray is started on this machine."""

import subprocess
from typing import Any

import psutil
import pytest
import ray
from ray._private import services
from ray.exceptions import RaySystemError

from ragassay.jobs import ray_start
from ragassay.pipeline.errors import ConfigError


def test_ray_that_takes_long_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def look(address: str, _: str) -> str:
        tries.append(address)
        if len(tries) < 3:
            raise (RuntimeError, RaySystemError)[len(tries) - 1]("the node is not known yet")
        return "node"

    def init(**options: Any) -> None:
        assert options["address"] == "local" and services.get_node("here", "id") == "node"

    monkeypatch.setattr(services, "get_node", look)
    monkeypatch.setattr(ray, "init", init)
    ray_start.start_here(1)
    assert tries == ["here"] * 3 and services.get_node is look
    tries.clear()
    monkeypatch.setattr(ray_start, "START_SECONDS", 0)
    with pytest.raises(ConfigError, match="Ray did not start on this machine within"):
        ray_start.start_here(1)
    assert services.get_node is look


@pytest.mark.slow
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
    ray_start.start_here(1)
    try:
        kinds = [kind for kind, _ in begun]
        assert kinds.count("raylet") == kinds.count("gcs_server") == 2
        assert ray.is_initialized()
        again = kinds.index("gcs_server", kinds.index("raylet"))
        assert all(process.poll() is not None for _, process in begun[:again])
        assert all(psutil.pid_exists(process.pid) for _, process in begun[again:])
    finally:
        ray.shutdown()
