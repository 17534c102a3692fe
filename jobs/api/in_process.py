"""Load and run the stages of a job in this process, without Ray."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from ragassay.pipeline.errors import RagassayError
from ragassay.pipeline.stages.stage import Stage, run_contained

ReportStep = Callable[[str], None]
"""Called with the name of a step before it starts."""

_loaded_stages: list[Stage] = []
"""Stages of the last job that have engines; the next check with the same job does not load them again."""


def load_stages(stages: Sequence[Stage], report_step: ReportStep) -> list[Stage]:
    """Set up stages. Reuse equal stages of the previous job, and drop its other engines.

    Args:
        stages: The stages, in order.
        report_step: Called before a stage with an engine is loaded.

    Raises:
        RagassayError: A model can't be loaded.
    """
    _loaded_stages[:] = [stage for stage in _loaded_stages if stage in stages]
    for stage in stages:
        if stage.replicas is None:
            stage.setup()
        elif stage not in _loaded_stages:
            report_step(f"loading {stage.name}")
            stage.setup()
            _loaded_stages.append(stage)
    return [_loaded_stages[_loaded_stages.index(stage)] if stage in _loaded_stages else stage for stage in stages]


def run_stages(stages: Sequence[Stage], table: pa.Table, report_step: ReportStep) -> pa.Table:
    """Run rows through stages.

    Args:
        stages: Result of `load_stages`.
        table: The rows.
        report_step: Called before each stage.

    Raises:
        RagassayError: A model can't be used; the next `load_stages` loads all of them again.
    """
    try:
        for stage in stages:
            report_step(stage.name)
            table = run_contained(stage, table)
    except RagassayError:
        _loaded_stages.clear()
        raise
    return table
