"""Logs of the cases: few rows, short texts, nothing random."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.golden.command import run_here

Row = dict[str, Any]

CITIES = ["Ulm", "Bath", "Graz", "Tallinn", "Porto"]
MANAGERS = ["Ada Brandt", "Owen Tully", "Mira Kovac", "Jon Weir"]
INVENTED = "Refunds are paid by Dr. Quentin Marlow within 14 days."


def make_shop_rows(count: int, start: int = 0) -> list[Row]:
    """Make responses about shops: of each four, two are correct, one has a wrong number, one an invented sentence."""
    return [_make_shop_row(i) for i in range(start, start + count)]


def _make_shop_row(i: int) -> Row:
    city, manager = f"{CITIES[i % 5]} {i}", MANAGERS[i % 4]
    opens, closes, price = 6 + i % 5, 3 + i % 6, 10 + 3 * i
    first = f"The shop in {city} opens at {opens + 2 * (i % 4 == 1)} a.m."
    second = INVENTED if i % 4 == 2 else f"Its manager is {manager}."
    third = f" A cabin suitcase costs {price} euros." if i % 3 == 0 else ""
    response = f"{first} {second}{third}"
    wrong = {1: 0, 2: 1}.get(i % 4)
    ends = [len(first), len(first) + 1 + len(second), len(response)]
    starts = [0, len(first) + 1, ends[1] + 1]
    return {
        "row_id": f"shop-{i}",
        "question": f"When does the shop in {city} open, and who runs it?",
        "context": [
            f"The shop in {city} opens at {opens} a.m. and closes at {closes} p.m. on weekdays.",
            f"{manager} has been its manager since {1990 + i}. A cabin suitcase costs {price} euros there.",
        ],
        "response": response,
        "tenant": f"tenant-{i % 3}",
        "label": "correct" if wrong is None else "wrong" if wrong == 0 else "partial",
        "sentence_labels": [
            {"start": a, "end": b, "supported": n != wrong} for n, (a, b) in enumerate(zip(starts, ends, strict=True)) if a < b
        ],
    }


def hide_names(text: str) -> str:
    """Redact the managers' names, as a user's own function would."""
    for name in MANAGERS:
        text = text.replace(name, "NAME")
    return text


def write(path: Path, rows: Sequence[Row] | pa.Table, **options: Any) -> Path:
    """Write rows as Parquet; create missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows)), path, **options)
    return path


def write_days(root: Path, days: int, rows: int, start: int = 0) -> None:
    """Write one folder per day, each with `rows` rows."""
    for day in range(days):
        write(root / f"dt=2026-11-{day + 1:02d}" / "a.parquet", make_shop_rows(rows, start + day * rows))


def read_demo_days(rows: int) -> dict[str, pa.Table]:
    """Read the first rows of each day of the bundled logs."""
    folder = Path(run_here(["demo-logs"]).stdout.strip())
    return {path.parent.name: ds.dataset(path).to_table().slice(0, rows) for path in sorted(folder.glob("*/*.parquet"))}


def write_demo(root: Path, rows: int) -> None:
    """Write the first rows of each day of the bundled logs."""
    for day, table in read_demo_days(rows).items():
        write(root / day / "part-0.parquet", table)
