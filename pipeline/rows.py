"""Rows as the members judge them."""

from dataclasses import dataclass

import pyarrow as pa

from ragassay.schemas.columns import Status


@dataclass(frozen=True)
class Row:
    """A row to score: texts of the sentences, with the question and the passages they are judged by."""

    question: str
    context: list[str]
    response: str
    sentences: list[str]


def good_rows(table: pa.Table) -> tuple[list[int], list[Row]]:
    """The rows of a table whose status is ok: their places in it, and their texts without empty passages."""
    places = [i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK]
    picked = table.select(["question", "context", "response", "sentences"]).take(pa.array(places, pa.int64())).to_pylist()
    return places, [
        Row(r["question"] or "", [p for p in r["context"] if p], r["response"], [s["text"] for s in r["sentences"]])
        for r in picked
    ]
