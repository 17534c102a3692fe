"""Build the bundled logs from their source: `python -m ragassay.jobs.data.handbook.build` reads *.yaml, writes dt=…/*.parquet.

- logs/ are all of items/: answers about a staff handbook, written to be hard (paraphrases are supported, contradictions use the
  context's own words). The verifiers were trained on its part `train`.
- demo/ is what `ragassay demo-logs` names: all of everyday/, answers with the errors that RAG systems make, and some of the
  handbook's part `test`; its column `part` states which. Nothing was trained on it.

A row is a response. Besides question, context and response it has the labels: `label` (correct, partial, wrong),
`hallucinated`, and `sentence_labels` (start, end, supported), offsets into the response.
"""

import shutil
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

HERE = Path(__file__).parent
LOGS = HERE / "logs"
DEMO = HERE / "demo"
DEMO_HARD_ITEMS = 24
"""Hard items of the demo: with more of them it takes longer than anybody waits for a demo on a small machine."""

FIRST_DAY = date(2026, 11, 2)
DAYS = 6
LABELS = ("correct", "partial", "wrong")

SCHEMA = pa.schema(
    [
        ("row_id", pa.string()),
        ("logged_at", pa.timestamp("s", tz="UTC")),
        ("item", pa.string()),
        ("split", pa.string()),
        ("workplace", pa.string()),
        ("topic", pa.string()),
        ("question", pa.string()),
        ("context", pa.list_(pa.string())),
        ("response", pa.string()),
        ("label", pa.string()),
        ("hallucinated", pa.bool_()),
        (
            "sentence_labels",
            pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("supported", pa.bool_())])),
        ),
    ]
)


def read_items(folder: str) -> list[dict[str, Any]]:
    """Read the items of a folder, in the order of the files."""
    items: list[dict[str, Any]] = []
    for path in sorted((HERE / folder).glob("*.yaml")):
        items.extend(yaml.safe_load(path.read_text(encoding="utf-8")))
    return items


def join_sentences(sentences: list[dict[str, str]]) -> tuple[str, list[dict[str, Any]]]:
    """Join labeled sentences to a response; list items ("- …") get lines of their own.

    Returns:
        The response, and (start, end, supported) of each sentence.
    """
    text, labels = "", []
    for sentence in sentences:
        (truth, words), *_ = sentence.items()
        if text:
            text += "\n" if words.startswith("- ") else " "
        labels.append({"start": len(text), "end": len(text) + len(words), "supported": truth == "supported"})
        text += words
    return text, labels


def make_rows(number: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    """Make the three log rows of an item; every third item is for testing."""
    day = FIRST_DAY + timedelta(days=number % DAYS)
    result = []
    for place, label in enumerate(LABELS):
        response, labels = join_sentences(item[label])
        minute = (number // DAYS) * 21 + place * 7
        result.append(
            {
                "row_id": f"{item['id']}-{label}",
                "logged_at": datetime(day.year, day.month, day.day, 8) + timedelta(minutes=minute),
                "item": item["id"],
                "split": "test" if (number + number // DAYS) % 3 == 2 else "train",
                **{key: item[key] for key in ("workplace", "topic", "question", "context")},
                "response": response,
                "label": label,
                "hallucinated": label != "correct",
                "sentence_labels": labels,
            }
        )
    return result


def demo_rows() -> list[list[dict[str, Any]]]:
    """The demo's rows, item by item."""
    hard = [make_rows(number, item) for number, item in enumerate(read_items("items"))]
    tested = [logged for logged in hard if logged[0]["split"] == "test"]
    everyday = [make_rows(number, item) for number, item in enumerate(read_items("everyday"))]
    parts = {"everyday": everyday, "hard": tested[:DEMO_HARD_ITEMS]}
    return [[{**row, "split": "test", "part": part} for row in item] for part, found in parts.items() for item in found]


def build(logs: Path = LOGS, demo: Path = DEMO) -> None:
    """Write both logs, one folder a day."""
    _write([make_rows(number, item) for number, item in enumerate(read_items("items"))], SCHEMA, logs)
    _write(demo_rows(), SCHEMA.append(pa.field("part", pa.string())), demo)


def _write(found: list[list[dict[str, Any]]], schema: pa.Schema, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    days: dict[date, list[dict[str, Any]]] = {}
    for item in found:
        days.setdefault(item[0]["logged_at"].date(), []).extend(item)
    for day, logged in sorted(days.items()):
        folder = target / f"dt={day.isoformat()}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(logged, schema=schema), folder / "part-0.parquet", compression="zstd")


if __name__ == "__main__":
    build()
