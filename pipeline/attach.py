"""Attach the results of a stage to the columns of its rows."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from ragassay.schemas.columns import Status

RowUpdate = Mapping[str, Any]
"""Result of a stage for one row: column -> value; see `attach`."""


def attach(table: pa.Table, columns: pa.Schema, additions: Mapping[int, RowUpdate]) -> pa.Table:
    """Attach a stage's results to rows.

    `members` and `usage` are extended and `error` texts are joined; `context_windows` keeps the larger number; any other value
    replaces the row's value. None keeps the row's value.

    Args:
        table: All rows.
        columns: Columns that the stage writes.
        additions: Row number -> result for the row; other rows stay unchanged. If a result has a `status` (see
            `mark_unscored`), all of its values replace the row's values.
    """
    values: dict[str, list[Any]] = {name: table[name].to_pylist() for name in columns.names}
    for row, addition in additions.items():
        for name in columns.names:
            values[name][row] = _merge_value(name, values[name][row], addition)
    return set_columns(table, columns, values)


def mark_unscored(status: Status, error: str | None) -> dict[str, Any]:
    """Return the result for a row that can't be scored: it has no members."""
    return {"members": None, "context_windows": None, "status": status.value, "error": error}


def null_if_nan(value: float) -> float | None:
    """Return a value for a nullable column: None for NaN."""
    return None if isnan(value) else float(value)


def set_columns(table: pa.Table, columns: pa.Schema, values: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the table with some columns replaced, or appended if they are new."""
    for field in columns:
        column, index = pa.array(values[field.name], field.type), table.schema.get_field_index(field.name)
        table = table.append_column(field, column) if index < 0 else table.set_column(index, table.schema.field(index), column)
    return table


def _merge_value(name: str, old: Any, addition: RowUpdate) -> Any:
    new = addition.get(name)
    if "status" in addition:
        return new if name in addition else old
    if new is None:
        return old
    if name in ("members", "usage"):
        return [*old, *new]
    if name == "error":
        return "; ".join(filter(None, [old, new])) or None
    return max(old or 0, new) if name == "context_windows" else new
