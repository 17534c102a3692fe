"""What a run says where the process of a worker ended more often than it may."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ragassay.jobs.runtime import errors
from ragassay.jobs.runtime.counts import answer_of
from ragassay.jobs.runtime.endings import behind
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.stages.stage import Stage


def explain_death(error: BaseException, stages: Sequence[Stage], board: Any) -> ModelError | None:
    """Name the stage of a worker that could not go on, the setting and the reason.

    Args:
        error: What ended the plan.
        stages: The plan's.
        board: Handle of the plan's board.

    Returns:
        The error to raise; None where no worker's process has ended.
    """
    from ray.exceptions import OutOfMemoryError, RayActorError, RayError, WorkerCrashedError

    kinds = (OutOfMemoryError, RayActorError, WorkerCrashedError)
    death = next((cause for cause in behind(error) if isinstance(cause, kinds)), None)
    if death is None:
        return None
    text = f"{death} {getattr(death, 'actor_id', '')}"
    number, reason = None, None
    with suppress(RayError):  # the board is gone as well
        number, reason = answer_of(board.death.remote(text))
    reason = reason or _reason_in(text)
    replicas = None if number is None else stages[number].replicas
    if number is None or replicas is None:
        return ModelError(errors.WORKER_DIED, reason=reason)
    restarts = replicas.restarts
    return ModelError(errors.REPLICA_DIED, stage=stages[number].name, times=restarts + 1, restarts=restarts, reason=reason)


def _reason_in(text: str) -> str:
    """What Ray says of the end of a process, in our words."""
    if "memory monitor" in text or "running low on memory" in text or "OutOfMemory" in text:
        return (
            "the memory of its machine was used up, and Ray ended it: lower replicas.max, runtime.block_mib, or what its "
            "engine may hold (max_num_batched_tokens, kv_cache_gib)"
        )
    return "it crashed or was killed from outside; the log of Ray on its machine may say more"
