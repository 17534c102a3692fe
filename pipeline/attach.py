"""Attach what a stage says of rows to their columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ragassay.schemas.columns import Status

Addition = Mapping[str, Any]
"""What a stage says of one row: column -> value; see `attach`."""


def attach(table: pa.Table, columns: pa.Schema, additions: Mapping[int, Addition]) -> pa.Table:
    """Attach what a stage says of rows.

    Entries are added to `members` and `usage`, and texts to `error`; `context_windows` keeps the larger number; any other value
    takes the place of the row's. None leaves what the row has.

    Args:
        table: All rows.
        columns: Columns that the stage writes.
        additions: Row number -> what the stage says of the row. Other rows stay as they are. Where it has a `status`, as
            `not_scored` gives it, all of its values take the place of the row's.
    """
    values: dict[str, list[Any]] = {name: table[name].to_pylist() for name in columns.names}
    for place, addition in additions.items():
        for name in columns.names:
            values[name][place] = _merged(name, values[name][place], addition)
    return with_columns(table, columns, values)


def not_scored(status: Status, error: str | None) -> dict[str, Any]:
    """What a stage says of a row that turned out not to be scorable: it has no members."""
    return {"members": None, "context_windows": None, "status": status.value, "error": error}


def with_columns(table: pa.Table, columns: pa.Schema, values: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The table with some columns set, or appended where it does not have them."""
    for field in columns:
        column, place = pa.array(values[field.name], field.type), table.schema.get_field_index(field.name)
        table = table.append_column(field, column) if place < 0 else table.set_column(place, table.schema.field(place), column)
    return table


def _merged(name: str, old: Any, addition: Addition) -> Any:
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
