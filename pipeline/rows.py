"""Rows as the members judge them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.text.as_judged import as_judged
from ragassay.schemas.columns import Status


@dataclass(frozen=True)
class Row:
    """A row to score: texts of the sentences, with the question and the passages they are judged by.

    Attributes:
        sentences: The sentences as they are judged (`pipeline.text.as_judged`).
        keep: The best so many passages are enough where not all fit a window; None keeps all of them.
    """

    question: str
    context: list[str]
    response: str
    sentences: list[str]
    keep: int | None = None


def good_rows(table: pa.Table, keep: int | None = None) -> tuple[list[int], list[Row]]:
    """The rows of a table whose status is ok, as models judge them.

    Args:
        table: Rows as the split stage leaves them; passages of re-ranked ones are taken best first.
        keep: Passages of a re-ranked row to keep where not all fit a window; None keeps all.

    Returns:
        Their places in the table, and their texts without empty passages.
    """
    names = ["question", "context", "response", "sentences", "passage_order"]
    places = [i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK]
    picked = table.select(names).take(pa.array(places, pa.int64())).to_pylist()
    return places, [
        Row(
            r["question"] or "",
            [p for p in _in_order(r["context"], r["passage_order"]) if p],
            r["response"],
            [as_judged(s["text"]) for s in r["sentences"]],
            None if r["passage_order"] is None else keep,
        )
        for r in picked
    ]


def _in_order(context: Sequence[str | None], order: Sequence[int] | None) -> Sequence[str | None]:
    return context if order is None else [context[i] for i in order]
