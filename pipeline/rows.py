"""Rows as the members judge them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from ragassay.pipeline.text.citations import find_cited_passages
from ragassay.pipeline.text.claim import extract_claim
from ragassay.schemas.columns import Status


class PassagePart(NamedTuple):
    """A part of a passage: the number of the passage, from 0, and the offsets [start, end) in it."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True)
class Row:
    """A row to score: its sentences, and the question and passages they are judged by.

    Attributes:
        question: The question; empty if it is missing.
        context: Passages.
        response: The whole response.
        sentences: The sentences as they are judged (`pipeline.text.claim`).
        keep_best: Number of top-ranked passages to keep if not all fit a window; None keeps all.
        passage_numbers: Number of each passage in the column `context`; () if they are the same.
    """

    question: str
    context: list[str]
    response: str
    sentences: list[str]
    keep_best: int | None = None
    passage_numbers: tuple[int, ...] = ()

    @cached_property
    def cited_passages(self) -> tuple[tuple[int, ...], ...]:
        """For each sentence the indices in `context` of the passages that it cites by number; () without a citation."""
        numbers = self.passage_numbers or range(len(self.context))
        return tuple(find_cited_passages(sentence, numbers) for sentence in self.sentences)

    def list_cited_passages(self, number: int) -> list[str]:
        """Return the passages that a sentence cites; empty without a citation, and if there is no sentence of this number."""
        cited = self.cited_passages[number] if number < len(self.cited_passages) else ()
        return [self.context[index] for index in cited]


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
    return indices, [_make_row(row, keep_best) for row in selected]


def _make_row(row: Mapping[str, Any], keep_best: int | None) -> Row:
    context, order = row["context"], row["passage_order"]
    numbers = tuple(i for i in (range(len(context)) if order is None else order) if context[i])
    return Row(
        row["question"] or "",
        [context[i] for i in numbers],
        row["response"],
        [extract_claim(sentence["text"]) for sentence in row["sentences"]],
        None if order is None else keep_best,
        numbers,
    )
