"""Explain why a run failed when the process of a worker ended more often than it may restart."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragassay.jobs.progress.counts import Board
from ragassay.jobs.runtime import errors
from ragassay.jobs.runtime.endings import walk_causes
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.stages.stage import Stage

_CREATION = "error raised in its creation task"
"""Part of Ray's error for an actor whose constructor raised."""

_CRASH = re.compile(r"^(\*\*\* SIG|Fatal Python error|terminate called|OMP: Error|\s*what\(\):)")
"""Beginning of a line that a process writes when it crashes."""


def explain_death(error: BaseException, stages: Sequence[Stage], board: Board) -> ModelError | None:
    """Name the stage of the worker that died, the setting that limits its restarts, and the reason.

    Args:
        error: The error that ended the plan.
        stages: The stages of the plan.
        board: The plan's board.

    Returns:
        The error to raise; None if no worker process has ended.
    """
    from ray.exceptions import OutOfMemoryError, RayActorError, RayError, WorkerCrashedError

    death_classes = (OutOfMemoryError, RayActorError, WorkerCrashedError)
    death = next((cause for cause in walk_causes(error) if isinstance(cause, death_classes)), None)
    if death is None:
        return None
    text = f"{_killed_workers(str(death))} {getattr(death, 'actor_id', '')}"
    number = reason = worker = None
    with suppress(RayError):  # the board may have ended too
        number, reason, worker = board.find_death(text)
    reason = reason or _reason_in(str(death), worker)
    replicas = None if number is None else stages[number].replicas
    if number is None or replicas is None:
        return ModelError(errors.WORKER_DIED, reason=reason)
    restarts = replicas.restarts
    return ModelError(errors.REPLICA_DIED, stage=stages[number].name, times=restarts + 1, restarts=restarts, reason=reason)


def _killed_workers(text: str) -> str:
    """Return the lines about the workers that Ray's memory monitor killed; the other lines name every worker of the machine."""
    killed = [line for line in text.splitlines() if line.startswith("Selected to kill")]
    return "\n".join(killed) if killed else text


def _reason_in(text: str, worker: str | None) -> str:
    """Return why a process ended, from the text of Ray's error and the log of the process."""
    if "memory monitor" in text or "running low on memory" in text or "OutOfMemory" in text:
        return (
            "the memory of its machine was used up, and Ray ended it: lower replicas.max, runtime.block_mib, or the memory of "
            "its engine (max_num_batched_tokens, kv_cache_gib)"
        )
    if _CREATION in text:
        last_line = text.strip().splitlines()[-1].strip()
        return f"it could not start: {last_line}{_name_worker_log(worker)}"
    crash = find_crash(worker)
    return f"it crashed or was killed from outside{f' ({crash})' if crash else ''}{_name_worker_log(worker)}"


def find_crash(worker: str | None) -> str | None:
    """Return the line about a crash in the log of a worker process of this machine; None without one.

    Other lines are not quoted: they may contain text of the logs.
    """
    path = find_worker_log(worker)
    with suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path else []
        return next((line.strip() for line in lines if _CRASH.search(line)), None)
    return None


def _name_worker_log(worker: str | None) -> str:
    path = find_worker_log(worker)
    return f"; its log is {path}" if path else "; the Ray log on its machine may show more"


def find_worker_log(worker: str | None) -> Path | None:
    """Return the file with what a worker process of this machine wrote to stderr; None on other machines."""
    if worker is None:
        return None
    from ray._private.worker import global_worker

    node = getattr(global_worker, "node", None)
    folder = Path(node.get_logs_dir_path()) if node is not None else None
    return next(folder.glob(f"worker-{worker}-*.err"), None) if folder else None
