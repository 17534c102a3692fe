"""The start of Ray on this machine."""

import inspect
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import ray
from ray._private import services
from ray._private.node import Node
from ray.exceptions import RaySystemError

from ragassay.jobs.runtime import ray_start
from tests.raises import raises

LOG = """[2026-11-23 13:00:00,000 I 7 7] (raylet) logging.cc:10: level 3
[2026-11-23 13:00:00,001 C 7 7] (raylet) plasma.cc:30: no room in /dev/shm
*** StackTrace Information ***
raylet(+0x263cb7) [0x55d0c9]
/lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0x85) [0x7f]
"""


def test_a_slow_start_of_ray_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def get_node(address: str, _: str) -> str:
        tries.append(address)
        if len(tries) < 3:
            raise (RuntimeError, RaySystemError)[len(tries) - 1]("the node is not known yet")
        return "node"

    def init(**options: Any) -> None:
        assert options["address"] == "local" and services.get_node("here", "id") == "node"

    monkeypatch.setattr(services, "get_node", get_node)
    monkeypatch.setattr(ray, "init", init)
    ray_start.start_local_ray(1)
    assert tries == ["here"] * 3 and services.get_node is get_node
    tries.clear()
    monkeypatch.setattr(ray_start, "START_SECONDS", 0)
    with raises("ray.not-started"):
        ray_start.start_local_ray(1)
    assert services.get_node is get_node


def test_a_raylet_that_always_ends_is_an_error_that_quotes_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For example, a raylet with too little shared memory fails at every start."""
    log, pauses, ended = tmp_path / "raylet.err", list[float](), list[Any]()

    def start(command: list[str], *_: Any, **__: Any) -> Any:
        log.write_text(LOG)
        ended.append(subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]))
        return SimpleNamespace(process=ended[-1])

    def init(**_: Any) -> None:
        services.start_ray_process(["raylet", f"--stderr_filepath={log}"], "raylet", False)
        ended[-1].wait()
        services.get_node("here", "id")

    monkeypatch.setattr(services, "start_ray_process", start)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(time, "sleep", pauses.append)
    reason = f"its raylet ended (3), its log {log} ends with: (raylet) plasma.cc:30: no room in /dev/shm"
    with raises("ray.not-started", reason=reason):
        ray_start.start_local_ray(1)
    assert len(ended) == ray_start.MAX_EARLY_FAILURES == len(pauses) + 1


def test_a_raylet_that_ends_later_is_started_again_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def start(*_: Any, **__: Any) -> Any:
        program = "raise SystemExit(3)" if len(begun) < 7 else "import time; time.sleep(60)"
        begun.append(subprocess.Popen([sys.executable, "-c", program]))
        return SimpleNamespace(process=begun[-1])

    def init(**_: Any) -> None:
        services.start_ray_process(["raylet"], "raylet", False)
        if len(begun) < 8:
            begun[-1].wait()
        services.get_node("here", "id")

    def get_node(*_: Any) -> None:
        raise RuntimeError("the node is not known yet")

    now = iter(range(10_000))
    monkeypatch.setattr(services, "start_ray_process", start)
    monkeypatch.setattr(services, "get_node", get_node)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: next(now) * 11.0)  # each call returns a time more than EARLY_SECONDS later
    with raises("ray.not-started"):
        ray_start.start_local_ray(1)
    assert len(begun) == 8
    begun[-1].kill()
    begun[-1].wait()


def test_ray_still_starts_the_dashboard_process_without_a_dashboard() -> None:
    """If this fails, remove `_without_dashboard`."""
    node = MagicMock(_gcs_address=None, _gcs_client=None)
    node._ray_params.include_dashboard = False
    Node.start_head_processes(node)
    node.start_api_server.assert_called_once()


def test_ray_still_has_a_fixed_wait_for_its_raylet() -> None:
    """If this fails, check whether a setting can replace `_longer_start_wait`."""
    assert "raylet_start_wait_time_s = 30\n" in inspect.getsource(Node.__init__)
