"""Build the bundled logs from their source: `python -m jobs.handbook.build` reads items/*.yaml, writes logs/dt=…/*.parquet.

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


def items() -> list[dict[str, Any]]:
    """The items as their authors wrote them, in the order of files and places."""
    found: list[dict[str, Any]] = []
    for path in sorted((HERE / "items").glob("*.yaml")):
        found.extend(yaml.safe_load(path.read_text(encoding="utf-8")))
    return found


def respond(sentences: list[dict[str, str]]) -> tuple[str, list[dict[str, Any]]]:
    """Join labelled sentences to a response; list items ("- …") get lines of their own.

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


def rows(number: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    """The three log rows of an item; every third item is for testing."""
    day = FIRST_DAY + timedelta(days=number % DAYS)
    result = []
    for place, label in enumerate(LABELS):
        response, labels = respond(item[label])
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


def build(target: Path = LOGS) -> None:
    """Write the logs, one folder a day."""
    shutil.rmtree(target, ignore_errors=True)
    days: dict[date, list[dict[str, Any]]] = {}
    for number, item in enumerate(items()):
        days.setdefault(FIRST_DAY + timedelta(days=number % DAYS), []).extend(rows(number, item))
    for day, logged in days.items():
        folder = target / f"dt={day.isoformat()}"
        folder.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(logged, schema=SCHEMA), folder / "part-0.parquet", compression="zstd")


if __name__ == "__main__":
    build()
