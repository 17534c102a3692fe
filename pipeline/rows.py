"""Rows as the members judge them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.text.claim import extract_claim
from ragassay.schemas.columns import Status


@dataclass(frozen=True)
class Row:
    """A row to score: its sentences, and the question and passages they are judged by.

    Attributes:
        question: The question; empty if it is missing.
        context: Passages.
        response: The whole response.
        sentences: The sentences as they are judged (`pipeline.text.claim`).
        keep_best: Number of top-ranked passages to keep if not all fit a window; None keeps all.
    """

    question: str
    context: list[str]
    response: str
    sentences: list[str]
    keep_best: int | None = None


def select_ok_rows(table: pa.Table, keep_best: int | None = None) -> tuple[list[int], list[Row]]:
    """Select the rows of a table with status ok, as models judge them.

    Args:
        table: Rows after the split stage; passages of re-ranked rows are ordered best first.
        keep_best: Number of top-ranked passages to keep if not all fit a window; None keeps all.

    Returns:
        Row numbers in the table, and the rows; their empty passages are left out.
    """
    names = ["question", "context", "response", "sentences", "passage_order"]
    indices = [i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK]
    selected = table.select(names).take(pa.array(indices, pa.int64())).to_pylist()
    return indices, [
        Row(
            row["question"] or "",
            [passage for passage in _order_passages(row["context"], row["passage_order"]) if passage],
            row["response"],
            [extract_claim(sentence["text"]) for sentence in row["sentences"]],
            None if row["passage_order"] is None else keep_best,
        )
        for row in selected
    ]


def _order_passages(context: Sequence[str | None], order: Sequence[int] | None) -> Sequence[str | None]:
    return context if order is None else [context[i] for i in order]
