"""The stages of a job in this process, without Ray."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from ragassay.pipeline.errors import RagassayError
from ragassay.pipeline.stages.stage import Stage, run_contained

Tell = Callable[[str], None]
"""Told what is waited for, in words."""

_loaded: list[Stage] = []
"""Stages with the engines of the last job: whoever asks about one answer after the other does not wait for them again."""


def load(stages: Sequence[Stage], tell: Tell) -> list[Stage]:
    """Set stages up; those of an earlier job that are equal are taken instead, and the other engines of that job dropped.

    Args:
        stages: In order.
        tell: Told what is being loaded.

    Raises:
        RagassayError: A model can't be loaded.
    """
    _loaded[:] = [stage for stage in _loaded if stage in stages]
    for stage in stages:
        if stage.replicas is None:
            stage.setup()
        elif stage not in _loaded:
            tell(f"loading {stage.name}")
            stage.setup()
            _loaded.append(stage)
    return [_loaded[_loaded.index(stage)] if stage in _loaded else stage for stage in stages]


def through(stages: Sequence[Stage], table: pa.Table, tell: Tell) -> pa.Table:
    """Rows through stages.

    Args:
        stages: What `load` gave.
        table: The rows.
        tell: Told whose turn it is.

    Raises:
        RagassayError: A model can't be used; the next `load` tries all of them anew.
    """
    try:
        for stage in stages:
            tell(stage.name)
            table = run_contained(stage, table)
    except RagassayError:
        _loaded.clear()
        raise
    return table
