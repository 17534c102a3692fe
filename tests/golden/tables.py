"""Render Parquet data as text: one line per value, rows in a stable order, without columns of `scored/` that repeat `raw/`."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.values import Mask, to_line, to_plain

KEYS = ("row_key", "row_id")
"""Columns that identify a row; rendered in its first line."""

LONG, SHOWN = 60, 5
"""A separate file with more than LONG rows is rendered as a digest and its first SHOWN rows."""


@dataclass
class Rows:
    """Rows of a dataset with their partitions.

    Attributes:
        schemas: Text of each distinct schema of the files; more than one is a fault.
        rows: Rows as Python values.
        partitions: Hive path of each row's file.
    """

    schemas: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)

    def add(self, table: pa.Table, partition: str = "") -> None:
        """Add the rows of a table."""
        schema = render_schema(table.schema)
        if schema not in self.schemas:
            self.schemas.append(schema)
        self.rows += table.to_pylist()
        self.partitions += [partition] * table.num_rows


def render_schema(schema: pa.Schema) -> str:
    """Render the columns and types of a schema, one per line."""
    return "".join(f"  {f.name}: {f.type}{'' if f.nullable else ' not null'}\n" for f in schema)


def read_dataset(folder: Path) -> Rows:
    """Read all Parquet files below a folder, except hidden ones."""
    rows = Rows()
    for path in sorted(folder.rglob("*.parquet")):
        relative = path.relative_to(folder)
        if not any(part.startswith(("_", ".")) for part in relative.parts):
            rows.add(pq.read_table(path, partitioning=None), str(relative.parent) if len(relative.parts) > 1 else "")
    return rows


def render_rows(rows: Rows, mask: Mask, base: Rows | None = None) -> str:
    """Render rows as text.

    Args:
        rows: Rows to render.
        mask: Replaces machine-dependent parts of strings.
        base: Rows with the same `row_key`; columns that are equal in every row are omitted.

    Returns:
        Schema, names of the omitted columns, and rows.
    """
    base_rows = {row["row_key"]: row for row in base.rows} if base else {}
    names = list(dict.fromkeys(name for row in rows.rows for name in row))
    repeated = [n for n in names if n not in KEYS and base_rows and all(_is_repeated(row, base_rows, n) for row in rows.rows)]
    head = "".join(f"schema\n{schema}" for schema in rows.schemas)
    if repeated:
        head += f"as in raw: {' '.join(repeated)}\n"
    texts = sorted(
        (_sort_key(row, partition), _render_row(row, partition, repeated, mask))
        for row, partition in zip(rows.rows, rows.partitions, strict=True)
    )
    return f"{head}rows {len(texts)}\n" + "".join(text for _, text in texts)


def render_digest(rows: Rows, mask: Mask) -> str:
    """Render a long table as its schema, one digest per column, and its first rows."""
    ordered = sorted((to_line(to_plain(row, mask)), row) for row in rows.rows)
    lines = [f"rows {len(ordered)}", *(f"first {text}" for text, _ in ordered[:SHOWN])]
    for name in ordered[0][1] if ordered else ():
        values = "\n".join(to_line(to_plain(row[name], mask)) for _, row in ordered)
        lines.append(f"digest of {name} {hashlib.sha256(values.encode()).hexdigest()[:16]}")
    return "".join(f"schema\n{schema}" for schema in rows.schemas) + "\n".join(lines) + "\n"


def _is_repeated(row: Mapping[str, Any], base_rows: Mapping[Any, Mapping[str, Any]], name: str) -> bool:
    base_row = base_rows.get(row.get("row_key"))
    return base_row is not None and name in base_row and repr(base_row[name]) == repr(row[name])


def _sort_key(row: Mapping[str, Any], partition: str) -> tuple[str, int, str]:
    return partition, row.get("row_key") or 0, str(row.get("row_id"))


def _render_row(row: Mapping[str, Any], partition: str, omitted: Iterable[str], mask: Mask) -> str:
    names = [name for name in row if name not in KEYS and name not in omitted]
    first = " ".join(f"{key} {to_line(to_plain(row[key], mask))}" for key in KEYS if key in row)
    lines = [f"- {first}{f' in {partition}' if partition else ''}"]
    for name in names:
        if row[name] is not None:
            lines += _render_cell(name, to_plain(row[name], mask))
    nulls = [name for name in names if row[name] is None]
    if nulls:
        lines.append(f"  null: {' '.join(nulls)}")
    return "\n".join(lines) + "\n"


def _render_cell(name: str, value: Any) -> list[str]:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return [f"  {name}", *(f"    {_render_struct(item)}" for item in value)]
    return [f"  {name} {to_line(value)}"]


def _render_struct(item: Any) -> str:
    if not isinstance(item, dict):
        return to_line(item)
    nulls = [key for key, value in item.items() if value is None]
    text = " ".join(f"{key} {to_line(value)}" for key, value in item.items() if value is not None)
    return text + (f" null: {' '.join(nulls)}" if nulls else "")
