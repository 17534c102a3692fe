"""Start Ray's processes on this machine: again where they end as they start, and without its dashboard."""

import logging
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ragassay.jobs import errors
from ragassay.pipeline.errors import ConfigError

START_SECONDS = 300
"""Until Ray must have started."""

STARTS = 5
"""So often at most, where one of its processes ends within `AT_ONCE` seconds: nothing will be different the next time."""

AT_ONCE = 10

WORDS = 3  # of its errors that are told then

_ERROR = re.compile(r"^\[.*? [CEF] \d+ \d+\] (.*)")  # a line of its log, without what comes before the message
_LOGGED = re.compile(r"^\[.*? [IWD] \d+ \d+\] ")


class _EndedError(Exception):
    """One of Ray's main processes is no more before anyone could reach it: which, and what it said last."""


class _LateError(Exception):
    """It is not there in time."""


def start_here(needed_cpus: float, runtime_env: dict[str, Any] | None = None) -> None:
    """Start Ray on this machine.

    Its raylet ends itself where an agent of its own takes more than a quarter or half of a minute to start, as it may on a busy
    machine or with a cold disk (ray-project/ray issue 65983); it is started anew then.

    Args:
        needed_cpus: Logical CPUs that it has at least.
        runtime_env: Ray's, for its workers.

    Raises:
        ConfigError: It did not start within `START_SECONDS`, or ended at once, `STARTS` times.
    """
    import ray

    until = time.monotonic() + START_SECONDS
    hopeless, last = 0, ""
    while True:
        began = time.monotonic()
        try:
            with _without_dashboard(), _patiently(until):
                ray.init(
                    address="local",  # never a cluster that happens to run here, nor what a killed run has left behind
                    num_cpus=max(os.cpu_count() or 1, -int(-needed_cpus // 1)),
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                    runtime_env=runtime_env,
                )
            return
        except _EndedError as error:
            hopeless += time.monotonic() - began < AT_ONCE
            if hopeless == STARTS or time.monotonic() > until:
                raise _no_ray(str(error)) from error
            last = f", and before that {error}"
            time.sleep(1)
        except _LateError as error:
            raise _no_ray(f"it was not there after {START_SECONDS / 60:g} minutes{last}") from error


@contextmanager
def _patiently(until: float) -> Iterator[None]:
    """Wait for Ray's processes longer than the half minute that it gives them, and no longer than they live.

    Ray 2.60 has no setting for that wait (ray-project/ray issue 46863, closed), and does not see that a raylet has ended, nor
    say why (issue 65983): both need its own functions. tests/jobs/runtime/test_ray_start.py fails when the wait is no longer
    fixed.

    Args:
        until: When they must have come, by the monotonic clock.

    Raises:
        _LateError: They did not come.
        _EndedError: The raylet or Ray's store of metadata (GCS) is no more; what was started beside it is ended.
    """
    from ray._private import ray_constants, services
    from ray.exceptions import RaySystemError

    needed = {ray_constants.PROCESS_TYPE_GCS_SERVER, ray_constants.PROCESS_TYPE_RAYLET}
    look, start = services.get_node, services.start_ray_process
    started: list[tuple[str, list[str], subprocess.Popen[bytes]]] = []

    def watched(command: list[str], process_type: str, *arguments: Any, **more: Any) -> Any:
        found = start(command, process_type, *arguments, **more)
        started.append((process_type, command, found.process))
        return found

    def wait(*arguments: Any, **more: Any) -> Any:
        while True:
            for kind, command, process in started:
                if kind in needed and process.poll() is not None:
                    _end(process for *_, process in started)
                    raise _EndedError(f"its {kind} ended ({process.returncode}), {_last_words(command)}")
            try:
                return look(*arguments, **more)
            except (RuntimeError, RaySystemError) as error:  # it is not known yet
                if time.monotonic() > until:
                    raise _LateError from error
            time.sleep(0.1)

    services.get_node, services.start_ray_process = wait, watched
    try:
        yield
    finally:
        services.get_node, services.start_ray_process = look, start


def _end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _last_words(command: Sequence[str]) -> str:
    """What a process of Ray's wrote last of its errors, and where it stands."""
    path = next((part.partition("=")[2] for part in command if re.match("--stderr.filepath=", part)), "")
    said: list[str] = []
    with suppress(OSError):
        lines = Path(path).read_text(errors="replace").splitlines()
        said = [error[1] for error in map(_ERROR.match, lines) if error] or [line for line in lines if not _LOGGED.match(line)]
    return f"saying in {path}: {' '.join(said[-WORDS:]) or 'nothing'}" if path else "saying nothing"


def _no_ray(why: str) -> ConfigError:
    return ConfigError(errors.NOT_STARTED, reason=why)


@contextmanager
def _without_dashboard() -> Iterator[None]:
    """Start no process of the dashboard: told to leave the dashboard out, Ray starts it all the same, for its usage statistics
    (ray-project/ray pull request 26042).

    Even where those are off it asks the metadata addresses of three clouds where it runs, and nothing may leave this machine.
    tests/jobs/runtime/test_ray_start.py fails when Ray leaves it out by itself.
    """
    from ray._private import services

    start = services.start_api_server
    services.start_api_server = lambda *_, **__: (None, None)  # what it gives where it could not be started
    try:
        yield
    finally:
        services.start_api_server = start
