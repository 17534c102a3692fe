"""Start or join Ray, and turn what comes back from its workers into our own errors."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragassay.jobs import errors
from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.runtime.endings import end_at_sigterm, full_error, is_full
from ragassay.jobs.runtime.ray_start import start_here
from ragassay.jobs.storage.object_store import gave_way, gave_way_error
from ragassay.pipeline.errors import ConfigError, RagassayError

WORKERS_A_CPU = 4
"""Worker processes that Ray keeps while they are idle; each takes seconds of CPU to start."""


@contextmanager
def ray_session(runtime: RuntimeConfig, needed_cpus: float, needed_gpus: float) -> Iterator[None]:
    """Have Ray running inside the block; Ray that was running before is left alone.

    On this machine Ray's logical CPUs are at least what the plan needs, so that two pools on two cores never wait for each
    other. A cluster is asked first whether it has enough.

    Args:
        runtime: Its `ray_address` names a cluster, or nothing.
        needed_cpus: Logical CPUs without which the plan could not move.
        needed_gpus: GPUs likewise.

    Raises:
        ConfigError: The cluster can't be reached or is too small, or this machine has too few GPUs.
        RagassayError: What was raised in a worker.
    """
    set_ray_environment()
    import ray

    # It would have every option of an actor be an argument by name, and has none for `max_restarts`.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message="`ray_remote_args`")
    started = not ray.is_initialized()
    if started:
        _start(runtime.ray_address, needed_cpus)
        end_at_sigterm()
    # Ray prints a worker's traceback twice before it raises it: leave that to its session log, and to the exception. Only now:
    # a worker that inherits the variable reads the file again in every task.
    os.environ.setdefault("RAY_DATA_LOGGING_CONFIG", str(Path(__file__).with_name("ray_data_logging.yaml")))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    try:
        _check_resources(needed_cpus, needed_gpus)
        yield
    except Exception as error:
        ours = our_error(error)
        if ours is not None:
            raise ours from error
        raise
    finally:
        if started:
            ray.shutdown()


def set_ray_environment() -> None:
    """What Ray reads from the environment when it starts; must be called before it is imported."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Our tasks take a fraction of a CPU each, and Ray ends idle workers beyond one a CPU: they would start again and again.
    os.environ.setdefault("RAY_num_workers_soft_limit", str(WORKERS_A_CPU * max(4, os.cpu_count() or 1)))
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")


def our_error(error: BaseException | None) -> RagassayError | None:
    """The RagassayError inside what Ray raises for a worker, or one for a full disk or a store; None where there is none."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, RagassayError):
            # Ray raises a class that is ours and its own, plus Ray's advice; `cause` is the one that the worker raised.
            cause = getattr(error, "cause", error)
            ours = cause if isinstance(cause, RagassayError) else error
            return type(ours)(ours.message, **ours.fields)
        if isinstance(error, OSError) and is_full(error):
            return full_error(error)
        if gave_way(error):
            return gave_way_error(error)
        seen.add(id(error))
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return None


def _start(address: str | None, needed_cpus: float) -> None:
    import ray

    if address:
        try:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(errors.NO_CLUSTER, address=address, reason=error) from error
        return
    with _without_stderr():
        start_here(needed_cpus)


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Ray's C++ part announces on stderr that it was told to be quiet; what goes wrong comes as an exception."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _check_resources(needed_cpus: float, needed_gpus: float) -> None:
    import ray

    have = ray.cluster_resources()
    needed = {"CPU": needed_cpus, "GPU": needed_gpus}
    for kind, amount in needed.items():
        if amount > have.get(kind, 0):
            raise ConfigError(
                errors.TOO_FEW_RESOURCES, needed=amount, kind=kind, available=have.get(kind, 0), kind_in_config=kind.lower()
            )
