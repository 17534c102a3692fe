"""Rank passages by how well the question fits each: "Invoke Interfaces Only When Needed", section 3.4."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.model import PromptAndText, UncertaintyModel
from ragassay.pipeline.uncertainty.prompted_text import SplitSentences, make_window_prompts
from ragassay.pipeline.uncertainty.scores import AttentionWeighting, token_surprisals
from ragassay.pipeline.uncertainty.token_statistics import TokenStatistics
from ragassay.pipeline.uncertainty.usage import MeasurementCost

_Pair = tuple[str, str]
"""Question and passage."""


@dataclass(frozen=True)
class RetrievedPassages:
    """A question and the passages retrieved for it. Either can be empty."""

    question: str
    passages: Sequence[str]

    @property
    def nonempty_passages(self) -> list[str]:
        """The passages that are not empty."""
        return [passage for passage in self.passages if passage.strip()]

    @property
    def can_be_ranked(self) -> bool:
        """Whether there is a question, and at least two different passages."""
        return bool(self.question.strip()) and len(set(self.nonempty_passages)) > 1


@dataclass
class RankedPassages(MeasurementCost):
    """Order of a row's passages, with the cost of ranking them.

    Attributes:
        order: Numbers of the passages, from 0, best first and empty ones last; None if the order is unchanged.
        note: Why the order is unchanged; None if the passages are ranked or there was nothing to rank.
    """

    order: list[int] | None = None
    note: str | None = None


def compute_question_uncertainty(tokens: TokenStatistics, attention: AttentionWeighting) -> float:
    """Compute the uncertainty of a question after a passage: eq. 6 of AttenHScore's paper.

        G = -sum over x_i of the question of Atten(x_i) log p(x_i)

    Args:
        tokens: Statistics of the question's tokens.
        attention: Attention in Atten.

    Returns:
        G >= 0; smaller = the question fits the passage better.
    """
    return float(token_surprisals(tokens, attention).sum())


def rank_passages(
    rows: Sequence[RetrievedPassages],
    rerank: Rerank,
    encoder: PromptEncoder,
    model: UncertaintyModel,
    split_sentences: SplitSentences,
) -> list[RankedPassages]:
    """Rank the passages of rows by G of the question after each passage, smallest first.

    Passages of equal G keep their order. A passage that is longer than the window is measured in pieces, and its smallest G
    counts. A question and passage that several rows share are measured once, at the cost of the first row.

    Args:
        rows: Questions with their passages.
        rerank: Settings, with the attention.
        encoder: Encoder of the prompts.
        model: The model.
        split_sentences: Splits a passage that is longer than the window.

    Returns:
        An entry per row.
    """
    first_rows: dict[_Pair, int] = {}
    for i, row in enumerate(rows):
        for passage in row.nonempty_passages if row.can_be_ranked else ():
            first_rows.setdefault((row.question, passage), i)
    prompts = {pair: _make_prompts(*pair, encoder, model.max_model_len, split_sentences) for pair in first_rows}
    measurements = iter(model.measure([prompt for pair_prompts in prompts.values() for prompt in pair_prompts]))
    ranked = [RankedPassages() for _ in rows]
    uncertainties: dict[_Pair, float] = {}
    for pair, pair_prompts in prompts.items():
        pieces = [next(measurements) for _ in pair_prompts]
        ranked[first_rows[pair]].add_measurements(pieces)
        if pieces:
            uncertainties[pair] = min(compute_question_uncertainty(piece.tokens, rerank.attention) for piece in pieces)
    for row, result in zip(rows, ranked, strict=True):
        if not row.can_be_ranked:
            continue
        if all((row.question, passage) in uncertainties for passage in row.nonempty_passages):
            result.order = _sort_passages(row, uncertainties)
        else:
            result.note = (
                f"rerank: the question leaves no room for a passage in the model's window of {model.max_model_len} tokens, so "
                "the passages keep their order"
            )
    return ranked


def _make_prompts(
    question: str, passage: str, encoder: PromptEncoder, limit: int, split_sentences: SplitSentences
) -> list[PromptAndText]:
    """Make a prompt for a passage, or for each piece of a long passage, with the question after it.

    The list is empty if the question leaves no room for a passage.
    """
    row = Row("", [passage], question, [])
    return [prompted.prompt for prompted in make_window_prompts(row, question, encoder, limit, split_sentences)]


def _sort_passages(row: RetrievedPassages, uncertainties: Mapping[_Pair, float]) -> list[int]:
    """Return the numbers of a row's passages, smallest G first and empty passages last. Equal passages keep their order."""
    return sorted(range(len(row.passages)), key=lambda i: uncertainties.get((row.question, row.passages[i]), inf))
