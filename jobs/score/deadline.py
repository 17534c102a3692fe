"""A budget of hours: after a point in time no reader gives a row and no model begins one; what is begun goes through.

Rows that are not begun are dropped on their way, and lost to nobody: they are not committed, and the next run reads them.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ragassay.jobs.plan import Stage


def until(tables: Iterable[pa.Table], deadline: float) -> Iterator[pa.Table]:
    """Tables that come before a point in time (`time.time()`)."""
    for table in tables:
        if time.time() >= deadline:
            return
        yield table


def ending(stages: Sequence[Stage], deadline: float) -> list[Stage]:
    """Stages of which the first with a model lets no row in after a point in time.

    Readers run ahead of the models by hundreds of blocks, which alone would take hours. Stages that are functions run as their
    rows are read, and those behind the first model finish what that has begun.

    Args:
        stages: In order.
        deadline: As `time.time()`.
    """
    first = next((number for number, stage in enumerate(stages) if stage.replicas is not None), None)
    return [_ending(stage, deadline) if number == first else stage for number, stage in enumerate(stages)]


def _ending(stage: Stage, deadline: float) -> Stage:
    call = type(stage.call.__name__, (EndingActor,), {})
    return replace(stage, call=call, arguments={"call": stage.call, "arguments": stage.arguments, "deadline": deadline})


class EndingActor:
    """An actor that lets no row in after a point in time: it gives an empty table of the same columns."""

    def __init__(self, call: Callable[..., Any], arguments: Mapping[str, Any], deadline: float) -> None:
        """Make the actor."""
        self._actor, self._deadline = call(**arguments), deadline

    def __call__(self, table: pa.Table) -> pa.Table:
        """Call it, or not."""
        return table.slice(0, 0) if time.time() >= self._deadline else self._actor(table)
