"""Passages in the order of how well the question fits each: "Invoke Interfaces Only When Needed", section 3.4."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.cost import Cost
from ragassay.pipeline.uncertainty.place import SentencesOf, place_in_windows
from ragassay.pipeline.uncertainty.reader import Prompt, Reader
from ragassay.pipeline.uncertainty.scores import Attention, surprisals
from ragassay.pipeline.uncertainty.signs import Signs

_Pair = tuple[str, str]
"""Question and passage."""


@dataclass(frozen=True)
class Found:
    """A question, and the passages that were found for it; either may be empty."""

    question: str
    passages: Sequence[str]

    @property
    def worded(self) -> list[str]:
        """The passages that are not empty."""
        return [passage for passage in self.passages if passage.strip()]

    @property
    def has_order(self) -> bool:
        """Whether there is anything to put in order: a question, and two passages that differ."""
        return bool(self.question.strip()) and len(set(self.worded)) > 1


@dataclass
class Ranked(Cost):
    """What was found of a row.

    Attributes:
        order: Numbers of its passages, from 0, best first, the empty ones last; None where it was left as it is, and
        note: says why, unless there was nothing to put in order.
    """

    order: list[int] | None = None
    note: str | None = None


def question_uncertainty(signs: Signs, attention: Attention) -> float:
    """The uncertainty of a question behind a passage (eq. 6).

        G = -sum over x_i of the question of Atten(x_i) log p(x_i)

    Args:
        signs: Of the question's tokens.
        attention: Which attention Atten is made of.

    Returns:
        G >= 0; smaller = the question fits the passage better.
    """
    return float(surprisals(signs, attention).sum())


def rank_rows(
    rows: Sequence[Found], rerank: Rerank, encoder: PromptEncoder, reader: Reader, sentences_of: SentencesOf
) -> list[Ranked]:
    """Put the passages of rows in order, by the G of the question behind each, smallest first.

    Passages of equal G keep their order. A passage that is longer than the window is read in pieces, and its best counts. What
    several rows have is read once, and the first of them is charged for it.

    Args:
        rows: Questions with their passages.
        rerank: Says which attention.
        encoder: Makes its prompts.
        reader: The model.
        sentences_of: Splits a passage that is longer than the window.

    Returns:
        An entry a row.
    """
    owner: dict[_Pair, int] = {}
    for i, row in enumerate(rows):
        for passage in row.worded if row.has_order else ():
            owner.setdefault((row.question, passage), i)
    prompts = {pair: _pieces(*pair, encoder, reader.max_model_len, sentences_of) for pair in owner}
    reads = iter(reader.read([prompt for pieces in prompts.values() for prompt in pieces]))
    ranked = [Ranked() for _ in rows]
    values: dict[_Pair, float] = {}
    for pair, pieces in prompts.items():
        mine = [next(reads) for _ in pieces]
        ranked[owner[pair]].spent(mine)
        if mine:
            values[pair] = min(question_uncertainty(read.signs, rerank.attention) for read in mine)
    for row, result in zip(rows, ranked, strict=True):
        if not row.has_order:
            continue
        if all((row.question, passage) in values for passage in row.worded):
            result.order = _order(row, values)
        else:
            result.note = (
                f"rerank: the question leaves no room for a passage in its window of {reader.max_model_len} tokens, so the "
                "passages keep their order"
            )
    return ranked


def _pieces(question: str, passage: str, encoder: PromptEncoder, limit: int, sentences_of: SentencesOf) -> list[Prompt]:
    """A question behind a passage, or behind each piece of a long one; nothing where the question leaves no room."""
    row = Row("", [passage], question, [])
    return [placed.prompt for placed in place_in_windows(row, question, encoder, limit, sentences_of)]


def _order(row: Found, values: Mapping[_Pair, float]) -> list[int]:
    """Numbers of a row's passages, smallest value first; those without a word last, and equals as they are."""
    return sorted(range(len(row.passages)), key=lambda i: values.get((row.question, row.passages[i]), inf))
