"""Actors that are looked after: one that hangs ends itself, and a run says which stage could not go on, and why."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from secrets import token_hex
from typing import Any

import pyarrow as pa

from ragassay.jobs.clean_output import clean_errors, clean_process_output
from ragassay.jobs.endings import behind
from ragassay.jobs.watchdog import Watchdog
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.listener import watch
from ragassay.pipeline.slm.config import Replicas

NAMESPACE = "ragassay ends"


class GuardedActor:
    """A stage that is an actor; see `guarded`."""

    def __init__(self, call: Callable[..., Any], arguments: Mapping[str, Any], place: str, minutes: float | None) -> None:
        """Make the actor under the watchdog: loading may hang as well.

        Args:
            call: Makes it,
            arguments: from these.
            place: Where it says why it ends.
            minutes: See `Replicas.hang_minutes`.
        """
        clean_process_output()
        self._watchdog = None
        if minutes is not None:
            hung = f"its engine had given no answer for {minutes:g} minutes (replicas.hang_minutes)"
            self._watchdog = Watchdog(minutes * 60, lambda: _say(place, hung))
            watch(self._watchdog)
        with self._working():
            self._actor = call(**arguments)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Call it."""
        with self._working():
            done: pa.Table = self._actor(table)
            return done

    @contextmanager
    def _working(self) -> Iterator[None]:
        with clean_errors(), nullcontext() if self._watchdog is None else self._watchdog.working():
            yield


class Guard:
    """Looks after the pools of one plan."""

    def __init__(self) -> None:
        """Begin; no pool is known yet."""
        self._place = token_hex(6)
        self._pools: dict[str, tuple[str, Replicas]] = {}

    def actor(self, name: str, call: Callable[..., Any], arguments: Mapping[str, Any], replicas: Replicas) -> dict[str, Any]:
        """The class of a stage's actors, by a name that tells the stage, and its arguments, as `map_batches` takes them.

        Args:
            name: The stage's.
            call: What makes its actor,
            arguments: from these.
            replicas: Its pool.
        """
        known = f"{call.__name__}_{re.sub(r'[^0-9A-Za-z]', '_', name)}_{len(self._pools)}"
        self._pools[known] = name, replicas
        place = f"{self._place}/{known}"
        made = {"call": call, "arguments": dict(arguments), "place": place, "minutes": replicas.hang_minutes}
        return {"fn": type(known, (GuardedActor,), {}), "fn_constructor_kwargs": made}

    def ended(self, error: BaseException) -> ModelError | None:
        """What to say where a worker's process ended more often than it may; None where the error is another."""
        from ray.exceptions import OutOfMemoryError, RayActorError, WorkerCrashedError

        kinds = (OutOfMemoryError, RayActorError, WorkerCrashedError)
        found = next((one for one in behind(error) if isinstance(one, kinds)), None)
        if found is None:
            return None
        text = str(found)
        known = next((name for name in self._pools if f"({name})" in text), None)
        said = _said(f"{self._place}/{known}") if known else []
        reason = said[-1] if said else _reason(text)
        again = "The same command goes on where it stopped"
        if known is None:
            return ModelError(f"the process of a worker ended again and again: {reason}. {again}")
        name, replicas = self._pools[known]
        return ModelError(
            f"{name}: the process of a replica ended {replicas.restarts + 1} times (replicas.restarts: {replicas.restarts}), "
            f"at last since {reason}. {again}"
        )

    def forget(self) -> None:
        """Delete what was said, which a cluster would keep."""
        with suppress(Exception):
            from ray.experimental.internal_kv import _internal_kv_del

            _internal_kv_del(f"{self._place}/", del_by_prefix=True, namespace=NAMESPACE)


def _reason(text: str) -> str:
    """What Ray says of the end of a process, in our words."""
    if "memory monitor" in text or "running low on memory" in text or "OutOfMemory" in text:
        return (
            "the memory of its machine was used up, and Ray ended it: lower replicas.max, block_mib, or what its engine may "
            "hold (max_num_batched_tokens, kv_cache_gib)"
        )
    return "it crashed or was killed from outside; the log of Ray on its machine may say more"


def _say(place: str, reason: str) -> None:
    from ray.experimental.internal_kv import _internal_kv_put

    _internal_kv_put(f"{place}/{token_hex(6)}", reason, namespace=NAMESPACE)


def _said(place: str) -> list[str]:
    with suppress(Exception):
        from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

        found = [_internal_kv_get(key, namespace=NAMESPACE) for key in _internal_kv_list(f"{place}/", namespace=NAMESPACE)]
        return [text.decode() for text in found if text]
    return []
