"""Attach what a stage says of rows to their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.schemas.columns import Status


@dataclass(frozen=True)
class Addition:
    """What a stage says of one row; None leaves what the row has.

    Attributes:
        members: Entries that are added to `members`.
        usage: Entry that is added to `usage`.
        evidence: Takes the place of `evidence`.
        windows: Windows of the context; `context_windows` keeps the largest number.
        passage_order: Takes the place of `passage_order`.
        note: Added to `error` of a row that is scored.
        status: Another status than ok takes the place of the row's: it has no members then.
        error: Why it has that status.
    """

    members: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, Any] | None = None
    evidence: Sequence[Mapping[str, Any]] | None = None
    windows: int | None = None
    passage_order: Sequence[int] | None = None
    note: str | None = None
    status: Status = Status.OK
    error: str | None = None


def attach(table: pa.Table, columns: pa.Schema, additions: Mapping[int, Addition]) -> pa.Table:
    """Attach what a stage says of rows.

    Args:
        table: All rows.
        columns: Columns that the stage writes, of `members`, `usage`, `evidence`, `context_windows`, `passage_order`, `status`
            and `error`.
        additions: Row number -> what the stage says of the row. Other rows stay as they are.
    """
    values: dict[str, list[Any]] = {name: table[name].to_pylist() for name in columns.names}
    for place, said in additions.items():
        for name in columns.names:
            values[name][place] = _added(name, values[name][place], said)
    for field in columns:
        position = table.schema.get_field_index(field.name)
        column = pa.array(values[field.name], type=field.type)
        table = table.set_column(position, table.schema.field(position), column)
    return table


def _added(name: str, old: Any, said: Addition) -> Any:
    """The value of a row's column."""
    if said.status is not Status.OK:
        failed = {"members": None, "context_windows": None, "status": said.status.value, "error": said.error}
        if name in failed:
            return failed[name]
    given: dict[str, Any] = {"evidence": said.evidence, "passage_order": said.passage_order}
    if name in given:
        return old if given[name] is None else given[name]
    if name == "members":
        return [*old, *said.members]
    if name == "usage":
        return [*old, said.usage] if said.usage is not None else old
    if name == "context_windows":
        return max(old or 0, said.windows) if said.windows is not None else old
    return "; ".join(filter(None, [old, said.note])) or None if name == "error" else old
