"""The Stage protocol: what every step over rows declares and does, whoever runs it."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from ragassay.pipeline.contain import contain, fault_of
from ragassay.pipeline.errors import StageError
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages import errors
from ragassay.schemas.columns import Status


class Stage(Protocol):
    """A step over rows: a table in, the same rows with other columns out.

    A stage is a small picklable dataclass. It holds settings until `setup` builds what is heavy, in the process that runs it.

    Attributes:
        name: Name, unique within a plan.
        columns_in: Columns that it reads.
        columns_out: Columns that it adds or rewrites.
        columns_dropped: Columns that it removes.
        replicas: Actor pool that runs it; None for a light stage, which runs in tasks.
        environment: Environment variables of the processes of its pool.
        unit: What its progress counts; None for a stage without a progress bar.
        fault_prefix: First words of the error of a row on which it fails; None where such a fault is the run's, or where the
            stage contains faults itself: `run_contained` runs the rows beside a faulty one again, for which it would pay.
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
        """Build what is heavy, once in each process that runs the stage.

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
    """Run a stage over rows; a row on which it fails gets the status `error`, and the others come out as without it.

    Args:
        stage: The stage, set up.
        table: The rows.

    Raises:
        RagassayError: And other faults of the run, see `contain`.
    """
    if stage.fault_prefix is None:
        return stage(table)
    pieces = contain(table.num_rows, lambda some: stage(table[some]), partial(_failed_row, stage, table))
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)


def _failed_row(stage: Stage, table: pa.Table, place: int, error: Exception) -> pa.Table:
    """The row with the stage's columns, without members and evidence, with its status and error."""
    schema, row = stage(table.slice(0, 0)).schema, table.slice(place, 1)
    known = {
        "members": None,
        "evidence": None,
        "status": Status.ERROR.value,
        "error": f"{stage.fault_prefix}: {fault_of(error)}",
    }
    kept = set(row.column_names) - known.keys()
    columns = [row[field.name] if field.name in kept else pa.array([known.get(field.name)], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def check_columns(stages: Sequence[Stage], source: pa.Schema, sink: pa.Schema) -> None:
    """Check, before a run starts, that each stage finds the columns that it reads, and the output those that it holds.

    Args:
        stages: In order.
        source: Schema of the rows before the first stage.
        sink: Columns that are written of the rows behind the last.

    Raises:
        StageError: Its field `faults` has every stage and column that does not fit.
    """
    known = {field.name: field.type for field in source}
    faults: list[dict[str, str]] = []

    def take(stage: str, column: str, wanted: pa.DataType | str = "column") -> None:
        found = known.get(column, "nothing")
        if found == "nothing" or wanted not in ("column", found):
            faults.append({"stage": stage, "column": column, "wanted": str(wanted), "found": str(found)})

    for stage in stages:
        for name in (*stage.columns_in, *stage.columns_dropped):
            take(stage.name, name)
        for name in stage.columns_dropped:
            known.pop(name, None)
        for field in stage.columns_out:
            known.setdefault(field.name, field.type)
            take(stage.name, field.name, field.type)
    for field in sink:
        take("output", field.name, field.type)
    if faults:
        shown = "; ".join("{stage} needs {column!r} as {wanted}, and there is {found}".format(**fault) for fault in faults)
        raise StageError(errors.STAGES_DO_NOT_FIT, shown=shown, faults=faults)
