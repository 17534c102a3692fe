"""Explain why a run failed when the process of a worker ended more often than it may restart."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ragassay.jobs.progress.counts import wait_for_answer
from ragassay.jobs.runtime import errors
from ragassay.jobs.runtime.endings import walk_causes
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.stages.stage import Stage


def explain_death(error: BaseException, stages: Sequence[Stage], board: Any) -> ModelError | None:
    """Name the stage of the worker that died, the setting that limits its restarts, and the reason.

    Args:
        error: The error that ended the plan.
        stages: The stages of the plan.
        board: Handle of the plan's board.

    Returns:
        The error to raise; None if no worker process has ended.
    """
    from ray.exceptions import OutOfMemoryError, RayActorError, RayError, WorkerCrashedError

    death_classes = (OutOfMemoryError, RayActorError, WorkerCrashedError)
    death = next((cause for cause in walk_causes(error) if isinstance(cause, death_classes)), None)
    if death is None:
        return None
    text = f"{_killed_workers(str(death))} {getattr(death, 'actor_id', '')}"
    number, reason = None, None
    with suppress(RayError):  # the board may have ended too
        number, reason = wait_for_answer(board.find_death.remote(text))
    reason = reason or _reason_in(str(death))
    replicas = None if number is None else stages[number].replicas
    if number is None or replicas is None:
        return ModelError(errors.WORKER_DIED, reason=reason)
    restarts = replicas.restarts
    return ModelError(errors.REPLICA_DIED, stage=stages[number].name, times=restarts + 1, restarts=restarts, reason=reason)


def _killed_workers(text: str) -> str:
    """Return the lines about the workers that Ray's memory monitor killed; the other lines name every worker of the machine."""
    killed = [line for line in text.splitlines() if line.startswith("Selected to kill")]
    return "\n".join(killed) if killed else text


def _reason_in(text: str) -> str:
    if "memory monitor" in text or "running low on memory" in text or "OutOfMemory" in text:
        return (
            "the memory of its machine was used up, and Ray ended it: lower replicas.max, runtime.block_mib, or the memory of "
            "its engine (max_num_batched_tokens, kv_cache_gib)"
        )
    return "it crashed or was killed from outside; the Ray log on its machine may show more"
