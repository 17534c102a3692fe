"""Parquet data as text: a line a value, rows in a stable order, values of `scored/` that repeat `raw/` left out.

A field that a line of a nested value does not name is null.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.values import Mask, compact, plain

KEYS = ("row_key", "row_id")
"""Columns that name a row; they stand in the first line of it."""


@dataclass
class Rows:
    """Rows of a dataset with their partitions.

    Attributes:
        schemas: Text of each schema among the files; one, unless something is wrong.
        rows: Rows, as Python values.
        partitions: Hive path of each row's file.
    """

    schemas: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)

    def add(self, table: pa.Table, partition: str = "") -> None:
        """Add the rows of a table."""
        schema = schema_text(table.schema)
        if schema not in self.schemas:
            self.schemas.append(schema)
        self.rows += table.to_pylist()
        self.partitions += [partition] * table.num_rows


def schema_text(schema: pa.Schema) -> str:
    """Columns and types of a schema, a line each."""
    return "".join(f"  {f.name}: {_type_text(f.type)}{'' if f.nullable else ' not null'}\n" for f in schema)


def _type_text(kind: pa.DataType) -> str:
    return str(kind).replace("list<element: ", "list<").replace("list<item: ", "list<")


def read_dataset(folder: Path) -> Rows:
    """Read all Parquet files below a folder, hidden ones aside."""
    found = Rows()
    for path in sorted(folder.rglob("*.parquet")):
        below = path.relative_to(folder)
        if not any(part.startswith(("_", ".")) for part in below.parts):
            found.add(pq.read_table(path, partitioning=None), str(below.parent) if len(below.parts) > 1 else "")
    return found


def rows_text(rows: Rows, mask: Mask, base: Rows | None = None) -> str:
    """Write rows as text.

    Args:
        rows: The rows.
        mask: Replaces machine-dependent parts of strings.
        base: Rows whose values are not repeated, where a column, or a field of a list of structs, is equal in every row.

    Returns:
        Schema, the names of what is left out, and the rows.
    """
    pairs = list(zip(rows.rows, _partners(rows, base), strict=True))
    names = [name for name in dict.fromkeys(name for row in rows.rows for name in row) if name not in KEYS]
    repeated = {name for name in names if pairs and all(name in old and _same(row[name], old[name]) for row, old in pairs)}
    fields = {name: _repeated_fields(name, pairs) for name in names if name not in repeated}
    head = _head(rows, base)
    left_out = [name for name in names if name in repeated]
    left_out += [f"{name}.{inner}" for name, inners in fields.items() for inner in inners]
    if left_out:
        head += f"as in raw: {' '.join(left_out)}\n"
    texts = sorted(
        (_order(row, place), _row_text(_without(row, repeated, fields), place, mask))
        for row, place in zip(rows.rows, rows.partitions, strict=True)
    )
    return f"{head}rows {len(texts)}\n" + "".join(text for _, text in texts)


def _head(rows: Rows, base: Rows | None) -> str:
    """The schemas; lines that the base's schema has are not repeated, but for their order."""
    known = {line for schema in base.schemas for line in schema.splitlines()} if base else set()
    text = ""
    for schema in rows.schemas:
        lines = [f"{line.partition(':')[0]}: as in raw" if line in known else line for line in schema.splitlines()]
        text += "schema\n" + "".join(f"{line}\n" for line in lines)
    return text


def _partners(rows: Rows, base: Rows | None) -> list[Mapping[str, Any]]:
    known = {row["row_key"]: row for row in base.rows} if base else {}
    return [known.get(row.get("row_key"), {}) for row in rows.rows]


def _same(value: Any, other: Any) -> bool:
    return repr(value) == repr(other)


def _is_structs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _repeated_fields(name: str, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[str]:
    """Fields of the structs of a column that are equal in the base, in every row."""
    both = [(row[name], old.get(name) or []) for row, old in pairs if _is_structs(row[name])]
    if not both or not all(_is_structs(old) and len(old) == len(new) for new, old in both):
        return []
    items = [pair for new, old in both for pair in zip(new, old, strict=True)]
    return [key for key in items[0][0] if all(key in old and _same(new[key], old[key]) for new, old in items)]


def _without(row: Mapping[str, Any], names: Iterable[str], fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in names}
    for name, inners in fields.items():
        if inners and _is_structs(kept[name]):
            kept[name] = [{key: value for key, value in item.items() if key not in inners} for item in kept[name]]
    return kept


def _order(row: Mapping[str, Any], partition: str) -> tuple[str, int, str]:
    return partition, row.get("row_key") or 0, str(row.get("row_id"))


def _row_text(row: Mapping[str, Any], partition: str, mask: Mask) -> str:
    names = [name for name in row if name not in KEYS]
    first = " ".join(f"{key} {compact(plain(row[key], mask))}" for key in KEYS if key in row)
    lines = [f"- {first}{f' in {partition}' if partition else ''}"]
    for name in names:
        if row[name] is not None:
            lines += _cell_lines(name, plain(row[name], mask))
    nulls = [name for name in names if row[name] is None]
    if nulls:
        lines.append(f"  null: {' '.join(nulls)}")
    return "\n".join(lines) + "\n"


def _cell_lines(name: str, value: Any) -> list[str]:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return [f"  {name}", *(f"    {_struct(item)}" for item in value)]
    return [f"  {name} {compact(value)}"]


def _struct(item: Any) -> str:
    if not isinstance(item, dict):
        return compact(item)
    return " ".join(f"{key} {compact(value)}" for key, value in item.items() if value is not None)
