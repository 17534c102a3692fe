"""Parquet data as text: a line a value, rows in a stable order, columns of `scored/` that repeat `raw/` left out."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.values import Mask, compact, plain

KEYS = ("row_key", "row_id")
"""Columns that name a row; they stand in the first line of it."""

LONG, SHOWN = 60, 5
"""From how many rows on a file of its own is shown as a digest, and how many of its rows are shown then."""


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
    return "".join(f"  {f.name}: {f.type}{'' if f.nullable else ' not null'}\n" for f in schema)


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
        base: Rows of which a column that is equal in every row is not repeated; known by `row_key`.

    Returns:
        Schema, the names of the columns left out, and the rows.
    """
    known = {row["row_key"]: row for row in base.rows} if base else {}
    names = list(dict.fromkeys(name for row in rows.rows for name in row))
    repeated = [n for n in names if n not in KEYS and known and all(_same(row, known, n) for row in rows.rows)]
    head = "".join(f"schema\n{schema}" for schema in rows.schemas)
    if repeated:
        head += f"as in raw: {' '.join(repeated)}\n"
    texts = sorted(
        (_order(row, place), _row_text(row, place, repeated, mask))
        for row, place in zip(rows.rows, rows.partitions, strict=True)
    )
    return f"{head}rows {len(texts)}\n" + "".join(text for _, text in texts)


def digest_text(rows: Rows, mask: Mask) -> str:
    """Write a long table as its schema, a digest per column, and its first rows."""
    ordered = sorted((compact(plain(row, mask)), row) for row in rows.rows)
    lines = [f"rows {len(ordered)}", *(f"first {text}" for text, _ in ordered[:SHOWN])]
    for name in ordered[0][1] if ordered else ():
        values = "\n".join(compact(plain(row[name], mask)) for _, row in ordered)
        lines.append(f"digest of {name} {hashlib.sha256(values.encode()).hexdigest()[:16]}")
    return "".join(f"schema\n{schema}" for schema in rows.schemas) + "\n".join(lines) + "\n"


def _same(row: Mapping[str, Any], known: Mapping[Any, Mapping[str, Any]], name: str) -> bool:
    other = known.get(row.get("row_key"))
    return other is not None and name in other and repr(other[name]) == repr(row[name])


def _order(row: Mapping[str, Any], partition: str) -> tuple[str, int, str]:
    return partition, row.get("row_key") or 0, str(row.get("row_id"))


def _row_text(row: Mapping[str, Any], partition: str, left_out: Iterable[str], mask: Mask) -> str:
    names = [name for name in row if name not in KEYS and name not in left_out]
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
    nulls = [key for key, value in item.items() if value is None]
    text = " ".join(f"{key} {compact(value)}" for key, value in item.items() if value is not None)
    return text + (f" null: {' '.join(nulls)}" if nulls else "")
