"""The Stage protocol: declaration and behavior of a step over rows, independent of its executor."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from ragassay.pipeline.contain import contain, describe_fault
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.errors import StageError
from ragassay.pipeline.stages import errors
from ragassay.schemas.columns import Status


class Stage(Protocol):
    """A step over rows: it takes a table and returns the same rows with other columns.

    A stage is a small picklable dataclass. It contains only settings until `setup` builds models in the process that runs it.

    Attributes:
        name: Name, unique in a plan.
        columns_in: Columns that it reads.
        columns_out: Columns that it adds or rewrites.
        columns_dropped: Columns that it removes.
        replicas: Actor pool that runs it; None for a light stage, which runs in tasks.
        environment: Environment variables of its pool's processes.
        unit: Unit of its progress; None for a stage without a progress bar.
        fault_prefix: Start of the error text of a failed row. None: a fault ends the run, or the stage contains its faults
            itself, because `run_contained` would repeat expensive work on other rows.
    """

    name: str
    columns_in: tuple[str, ...]
    columns_out: pa.Schema
    columns_dropped: tuple[str, ...] = ()
    replicas: Replicas | None = None
    environment: Mapping[str, str] = MappingProxyType({})
    unit: str | None = None
    fault_prefix: str | None = None

    def setup(self) -> None:
        """Build models, once in each process that runs the stage.

        Raises:
            RagassayError: A model can't be loaded.
        """
        return

    def __call__(self, table: pa.Table) -> pa.Table:
        """Run the step over a batch of rows.

        Raises:
            RagassayError: A model can't be used.
        """
        ...


def run_contained(stage: Stage, table: pa.Table) -> pa.Table:
    """Run a stage over rows; a row on which it fails gets the status `error` and does not affect other rows.

    Args:
        stage: The stage, after `setup`.
        table: The rows.

    Raises:
        RagassayError, OSError, ImportError: The run can't continue.
    """
    if stage.fault_prefix is None:
        return stage(table)
    pieces = contain(table.num_rows, lambda some: stage(table[some]), partial(_make_failed_row, stage, table))
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)


def _make_failed_row(stage: Stage, table: pa.Table, index: int, error: Exception) -> pa.Table:
    """Return the row with the stage's columns, without members and evidence, with its status and error."""
    schema, row = stage(table.slice(0, 0)).schema, table.slice(index, 1)
    values = {
        "members": None,
        "evidence": None,
        "status": Status.ERROR.value,
        "error": f"{stage.fault_prefix}: {describe_fault(error)}",
    }
    kept = set(row.column_names) - values.keys()
    columns = [row[field.name] if field.name in kept else pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def check_columns(stages: Sequence[Stage], source: pa.Schema, sink: pa.Schema) -> None:
    """Check before a run that each stage finds the columns it reads, and that the output finds its columns.

    Args:
        stages: Stages in order.
        source: Schema of the rows before the first stage.
        sink: Columns that are written after the last stage.

    Raises:
        StageError: Its field `faults` lists every stage and column that does not match.
    """
    types = {field.name: field.type for field in source}
    faults: list[dict[str, str]] = []

    def check_column(stage: str, column: str, expected: pa.DataType | str = "column") -> None:
        actual = types.get(column, "nothing")
        if actual == "nothing" or expected not in ("column", actual):
            faults.append({"stage": stage, "column": column, "expected": str(expected), "actual": str(actual)})

    for stage in stages:
        for name in (*stage.columns_in, *stage.columns_dropped):
            check_column(stage.name, name)
        for name in stage.columns_dropped:
            types.pop(name, None)
        for field in stage.columns_out:
            types.setdefault(field.name, field.type)
            check_column(stage.name, field.name, field.type)
    for field in sink:
        check_column("output", field.name, field.type)
    if faults:
        mismatches = "; ".join("{stage} needs {column!r} as {expected}, not {actual}".format(**fault) for fault in faults)
        raise StageError(errors.STAGES_DO_NOT_FIT, mismatches=mismatches, faults=faults)
