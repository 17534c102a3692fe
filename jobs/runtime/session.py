"""Where the tasks of a command run: in its own process for a small input, otherwise with Ray."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.display.library_log import report_crash
from ragassay.jobs.progress.task import task
from ragassay.jobs.runtime.ray_session import ray_session
from ragassay.jobs.runtime.tasks import local_session
from ragassay.schemas.manifest import Manifest

LOCAL_OUTPUT_ROWS = 100_000
"""Maximum rows of an output whose statistics and verdicts are computed in this process: a second's work."""


def fits_in_process(runtime: RuntimeConfig, rows: int, manifest: Manifest) -> bool:
    """Return whether a command is so small that this process does its tasks sooner than Ray starts.

    Args:
        runtime: Its `local_rows` limits the rows to score. A named cluster or a Ray that already runs is used.
        rows: Rows to score.
        manifest: Manifest of the output, whose scored rows get verdicts.
    """
    if runtime.ray_address is not None or rows > runtime.local_rows or _is_ray_running():
        return False
    return runtime.local_rows > 0 and manifest.count_scored_rows().total() <= LOCAL_OUTPUT_ROWS


@contextmanager
def open_session(
    runtime: RuntimeConfig, needed_cpus: float, needed_gpus: float, console: Console, *, local: bool
) -> Iterator[None]:
    """Run the block in this process, or with Ray and these logical CPUs and GPUs; show Ray's start.

    Raises:
        RagassayError: See `ray_session`.
    """
    if local:
        with report_crash(), local_session():  # an engine may crash this process
            yield
        return
    with ExitStack() as stack:
        with task(console, "loading", "Ray"):
            stack.enter_context(ray_session(runtime, needed_cpus, needed_gpus))
        yield


def _is_ray_running() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())
