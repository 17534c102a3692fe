"""What the workers of a run have counted, as the driver reads it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields

from ragassay.jobs.progress.meter import NAMESPACE, Counts, Phase


def read_counts(run: str, stages: int) -> list[Counts]:
    """Sums over the workers of each stage of a run, in the order of the stages; nothing done where Ray can't be asked.

    Args:
        run: The run: a meter's place is `RUN/STAGE`, with the number of the stage.
        stages: How many.
    """
    entries: dict[bytes, bytes] = {}
    with suppress(Exception):  # Ray is starting, or ending: the next look sees more
        from ray.experimental.internal_kv import _internal_kv_list, internal_kv_get_gcs_client

        keys = _internal_kv_list(f"{run}/", namespace=NAMESPACE)
        entries = internal_kv_get_gcs_client().internal_kv_multi_get(keys, NAMESPACE.encode()) if keys else {}
    of_stage: list[list[Counts]] = [[] for _ in range(stages)]
    for key, text in entries.items():
        told = json.loads(text)
        of_stage[int(key.split(b"/")[1])].append(Counts(**{**told, "phase": Phase(told["phase"])}))
    return [add_up(counts) for counts in of_stage]


def add_up(counts: Sequence[Counts]) -> Counts:
    """Counts of several workers as one; that of the furthest is the phase."""
    total = Counts()
    for one in counts:
        for field in fields(Counts):
            if field.name != "phase":
                setattr(total, field.name, getattr(total, field.name) + getattr(one, field.name))
    order = list(Phase)
    total.phase = max((one.phase for one in counts), key=order.index, default=Phase.LOADING)
    return total


def forget(run: str) -> None:
    """Delete the entries of a run, which a cluster would keep."""
    with suppress(Exception):
        from ray.experimental.internal_kv import _internal_kv_del

        _internal_kv_del(f"{run}/", del_by_prefix=True, namespace=NAMESPACE)
