"""Start Ray's processes on this machine, without the dashboard. If they end while they start, start them again."""

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
from ragassay.pipeline.engines.verbosity import is_verbose
from ragassay.pipeline.errors import ConfigError

START_SECONDS = 300
"""Maximum time for Ray to start."""

MAX_EARLY_FAILURES = 5
"""Maximum failures within `EARLY_SECONDS`: the next start would not be different."""

EARLY_SECONDS = 10
"""Time in which a process of Ray must end to count as an early failure."""

ERROR_LINES = 3
"""Error lines of a failed process that the message quotes."""

_ERROR_LINE = re.compile(r"^\[.*? [CEF] \d+ \d+\] (.*)")  # the group is the line without its log prefix
_INFO_LINE = re.compile(r"^\[.*? [IWD] \d+ \d+\] ")


class _ProcessEndedError(Exception):
    """One of Ray's main processes ended before it could be reached. The message names it and quotes its last errors."""


class _StartTimeoutError(Exception):
    """Ray did not start in time."""


def start_local_ray(needed_cpus: float, runtime_env: dict[str, Any] | None = None) -> None:
    """Start Ray on this machine.

    Ray's raylet ends itself if one of its agents takes more than 15 to 30 seconds to start, which happens on a busy machine or
    with a cold disk (ray-project/ray issue 65983). Ray is then started again.

    Args:
        needed_cpus: Minimum logical CPUs of Ray.
        runtime_env: Ray's runtime environment for its workers.

    Raises:
        ConfigError: Ray did not start within `START_SECONDS`, or failed early `MAX_EARLY_FAILURES` times.
    """
    import ray

    until = time.monotonic() + START_SECONDS
    early_failures, previous_failure = 0, ""
    while True:
        began = time.monotonic()
        try:
            with _without_dashboard(), _longer_start_wait(until):
                ray.init(
                    address="local",  # not another cluster on this machine, nor the remains of a killed run
                    num_cpus=max(os.cpu_count() or 1, -int(-needed_cpus // 1)),
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                    log_to_driver=is_verbose(),
                    runtime_env=runtime_env,
                )
            return
        except _ProcessEndedError as error:
            early_failures += time.monotonic() - began < EARLY_SECONDS
            if early_failures == MAX_EARLY_FAILURES or time.monotonic() > until:
                raise _not_started(str(error)) from error
            previous_failure = f", and before that {error}"
            time.sleep(1)
        except _StartTimeoutError as error:
            reason = f"it had not started after {START_SECONDS / 60:g} minutes{previous_failure}"
            raise _not_started(reason) from error


@contextmanager
def _longer_start_wait(until: float) -> Iterator[None]:
    """Wait for Ray's processes longer than Ray's own 30 seconds, and stop waiting when a process has ended.

    Ray 2.60 has no setting for this wait (ray-project/ray issue 46863, closed). It does not notice that a raylet has ended, nor
    report why (issue 65983). Both need Ray's internal functions. tests/jobs/runtime/test_ray_start.py fails when the wait is no
    longer fixed.

    Args:
        until: Time of `time.monotonic()` when the processes must have started.

    Raises:
        _StartTimeoutError: The processes did not start in time.
        _ProcessEndedError: The raylet or Ray's metadata store (GCS) has ended; the processes that started with it are killed.
    """
    from ray._private import ray_constants, services
    from ray.exceptions import RaySystemError

    main_processes = {ray_constants.PROCESS_TYPE_GCS_SERVER, ray_constants.PROCESS_TYPE_RAYLET}
    get_node, start_process = services.get_node, services.start_ray_process
    started: list[tuple[str, list[str], subprocess.Popen[bytes]]] = []

    def start_and_record(command: list[str], process_type: str, *args: Any, **kwargs: Any) -> Any:
        info = start_process(command, process_type, *args, **kwargs)
        started.append((process_type, command, info.process))
        return info

    def wait_for_node(*args: Any, **kwargs: Any) -> Any:
        while True:
            for process_type, command, process in started:
                if process_type in main_processes and process.poll() is not None:
                    _kill_all(process for *_, process in started)
                    raise _ProcessEndedError(f"its {process_type} ended ({process.returncode}), {_quote_errors(command)}")
            try:
                return get_node(*args, **kwargs)
            except (RuntimeError, RaySystemError) as error:  # the node is not registered yet
                if time.monotonic() > until:
                    raise _StartTimeoutError from error
            time.sleep(0.1)

    services.get_node, services.start_ray_process = wait_for_node, start_and_record
    try:
        yield
    finally:
        services.get_node, services.start_ray_process = get_node, start_process


def _kill_all(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _quote_errors(command: Sequence[str]) -> str:
    """Quote the last errors in the log of a Ray process, with the path of the log."""
    path = next((part.partition("=")[2] for part in command if re.match("--stderr.filepath=", part)), "")
    lines: list[str] = []
    with suppress(OSError):
        log = Path(path).read_text(errors="replace").splitlines()
        lines = [match[1] for match in map(_ERROR_LINE.match, log) if match] or [
            line for line in log if not _INFO_LINE.match(line)
        ]
    return f"its log {path} ends with: {' '.join(lines[-ERROR_LINES:]) or 'nothing'}" if path else "without a log"


def _not_started(reason: str) -> ConfigError:
    return ConfigError(errors.NOT_STARTED, reason=reason)


@contextmanager
def _without_dashboard() -> Iterator[None]:
    """Prevent Ray from starting its dashboard process, which it starts even with `include_dashboard=False`.

    Ray uses that process for its usage statistics (ray-project/ray pull request 26042). Even if these are off, it asks the
    metadata addresses of three clouds where it runs, and nothing may leave this machine. tests/jobs/runtime/test_ray_start.py
    fails when Ray no longer starts it.
    """
    from ray._private import services

    start_api_server = services.start_api_server
    services.start_api_server = lambda *_, **__: (None, None)  # Ray's result if the dashboard can't start
    try:
        yield
    finally:
        services.start_api_server = start_api_server
