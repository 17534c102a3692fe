"""Start Ray or connect to a cluster, and convert errors of its workers into our own errors."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragassay.jobs import errors
from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.runtime.endings import handle_sigterm, is_disk_full, make_disk_full_error, walk_causes
from ragassay.jobs.runtime.ray_start import start_local_ray
from ragassay.jobs.runtime.resources import check_resources
from ragassay.jobs.storage.store_retries import is_store_error, store_error
from ragassay.pipeline.engines.verbosity import is_verbose
from ragassay.pipeline.errors import ConfigError, RagassayError

WORKERS_PER_CPU = 4
"""Idle worker processes that Ray keeps per CPU; each takes seconds of CPU to start."""


@contextmanager
def ray_session(runtime: RuntimeConfig, needed_cpus: float, needed_gpus: float) -> Iterator[None]:
    """Run the block with Ray. If Ray already runs, it is used and keeps running.

    A local Ray gets at least as many logical CPUs as the plan needs, so that two pools on two cores never wait for each other.
    A cluster must have enough resources.

    Args:
        runtime: Its `ray_address` names a cluster, or is None.
        needed_cpus: Logical CPUs that the plan needs.
        needed_gpus: GPUs that the plan needs.

    Raises:
        ConfigError: The cluster is not reachable or too small, or this machine has too few GPUs.
        RagassayError: A worker raised it.
    """
    set_ray_environment()
    import ray

    # Ray asks for actor options by keyword, but has no keyword for `max_restarts`.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message="`ray_remote_args`")
    started = not ray.is_initialized()
    if started:
        _start(runtime.ray_address, needed_cpus)
        handle_sigterm()
    # Ray prints a worker's traceback twice before it raises the error. This setting sends it only to the session log. It is set
    # after the start: a worker that inherits the variable reads the file again in every task.
    set_ray_data_log()
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    try:
        check_resources(needed_cpus, needed_gpus)
        yield
    except Exception as error:
        own_error = find_own_error(error)
        if own_error is not None:
            raise own_error from error
        raise
    finally:
        if started:
            ray.shutdown()


def set_ray_data_log() -> None:
    """Set where Ray Data logs; `ray.data` reads it when it is first imported."""
    os.environ.setdefault("RAY_DATA_LOGGING_CONFIG", str(Path(__file__).with_name("ray_data_logging.yaml")))


def set_ray_environment() -> None:
    """Set the environment variables of Ray. Call this before Ray is imported."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Our tasks take a fraction of a CPU, and Ray ends idle workers beyond one per CPU: they would restart all the time.
    os.environ.setdefault("RAY_num_workers_soft_limit", str(WORKERS_PER_CPU * max(4, os.cpu_count() or 1)))
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")


def find_own_error(error: BaseException | None) -> RagassayError | None:
    """Find the RagassayError behind an error of Ray. A full disk and a failed object store become one.

    Returns:
        The error to raise; None if there is none.
    """
    for current in walk_causes(error):
        if isinstance(current, RagassayError):
            # Ray raises a class derived from ours and its own, with Ray's advice; `cause` is the error that the worker raised.
            cause = getattr(current, "cause", current)
            own_error = cause if isinstance(cause, RagassayError) else current
            return type(own_error)(own_error.message, **own_error.fields)
        if isinstance(current, OSError) and is_disk_full(current):
            return make_disk_full_error(current)
        if is_store_error(current):
            return store_error(current)
    return None


def _start(address: str | None, needed_cpus: float) -> None:
    import ray

    if address:
        try:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=is_verbose())
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(errors.NO_CLUSTER, address=address, reason=error) from error
        return
    with _without_stderr():
        start_local_ray(needed_cpus)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Discard stderr during the block. Ray's C++ code announces its log level there; faults arrive as exceptions."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as null:  # noqa: PTH123
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
