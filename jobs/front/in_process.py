"""The stages of a job in this process, without Ray."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ragassay.jobs.plan import Stage
from ragassay.pipeline.errors import RagassayError

Tell = Callable[[str], None]
"""Told what is waited for, in words."""

Step = Callable[[pa.Table], pa.Table]

_loaded: list[tuple[Stage, Any]] = []
"""Engines of the last job: whoever asks about one answer after the other does not wait for them again."""


def load(stages: Sequence[Stage], tell: Tell) -> list[tuple[str, Step]]:
    """What is called of each stage, by its name; engines are loaded, and those of an earlier job dropped.

    Args:
        stages: In order.
        tell: Told what is being loaded.

    Raises:
        RagassayError: A model can't be loaded.
    """
    # Metrics are of runs, and Ray's.
    plain = [replace(stage, arguments={k: v for k, v in stage.arguments.items() if k != "metrics"}) for stage in stages]
    _loaded[:] = [(stage, actor) for stage, actor in _loaded if stage in plain]
    steps: list[tuple[str, Step]] = []
    for stage in plain:
        actor = stage.step if stage.replicas is None else next((a for known, a in _loaded if known == stage), None)
        if actor is None:
            tell(f"loading {stage.name}")
            actor = stage.step()
            _loaded.append((stage, actor))
        steps.append((stage.name, actor))
    return steps


def through(steps: Sequence[tuple[str, Step]], table: pa.Table, tell: Tell) -> pa.Table:
    """Rows through loaded stages.

    Args:
        steps: What `load` gave.
        table: The rows.
        tell: Told whose turn it is.

    Raises:
        RagassayError: A model could not be loaded, or can't be used; the next `load` tries all of them anew.
    """
    try:
        for name, step in steps:
            tell(name)
            table = step(table)
    except RagassayError:
        _loaded.clear()
        raise
    return table
