"""The prompts of one row: every sentence in every window of its context, and what makes a row impossible to ask about."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.prompt import Ids, PromptBuilder
from pipeline.slm import Slm
from pipeline.split import Span
from pipeline.windows import cut_context
from schemas.columns import Status

MIN_CONTEXT_TOKENS = 32
"""A window with less room than this for context is no window: the row is `too_long`."""

SLACK = 8
"""Tokens kept free a passage, for what a passage costs beyond its own tokens (a line break, a merge at its edge)."""

Prompt = tuple[int, ...]


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


def prompt_order(row: Row) -> tuple[list[str], str]:
    """Key by which rows that share a prefix stand together: those over one context, and among them those to one question."""
    return row.context, row.question


@dataclass
class RowPrompts:
    """Prompts of one row.

    Attributes:
        prompts: For each text (sentences, then the whole response if it is asked about) its prompt in every window.
        windows: Windows of the context.
        whole: Whether the whole response is the last text.
        error: Why the row can't be asked about; prompts are empty then.
        note: What is missing in a row that can.
    """

    prompts: list[list[Prompt]] = field(default_factory=list)
    windows: int = 0
    whole: bool = False
    error: str | None = None
    note: str | None = None


def prompts_of_row(
    row: Row, slm: Slm, builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]
) -> RowPrompts:
    """All prompts of a row.

    Args:
        row: A row with at least one sentence.
        slm: The SLM's config.
        builder: Its prompts.
        limit: Tokens that a prompt may have.
        sentences_of: Splits a passage that is longer than the window.
    """
    found = RowPrompts()
    texts = [*row.sentences, *([row.response] if slm.whole_response else [])]
    found.whole = slm.whole_response
    found.prompts, found.windows = _prompts(row, texts, builder, limit, sentences_of)
    if found.whole and not found.prompts:
        found.note = (
            f"SLM {slm.name!r}: the whole response does not fit its window of {limit + 1} tokens, so response_score is null"
        )
        found.whole = False
        found.prompts, found.windows = _prompts(row, row.sentences, builder, limit, sentences_of)
    if not found.prompts:
        found.error = f"SLM {slm.name!r}: question and sentence leave no room for context in its window of {limit + 1} tokens"
        found.note = None
    return found


def _prompts(
    row: Row, texts: list[str], builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]
) -> tuple[list[list[Prompt]], int]:
    """Prompts of each text in every window; nothing where a text leaves no room for context."""

    def encode(context: list[str]) -> tuple[Ids, list[Ids]]:
        return builder.prefix(row.question, context), builder.suffixes(row.question, context, texts)

    def length(encoded: tuple[Ids, list[Ids]]) -> int:
        return len(encoded[0]) + max(len(tail) for tail in encoded[1])

    windows = [row.context]
    encoded = [encode(row.context)]
    if length(encoded[0]) > limit:
        budget = limit - length(encode([""]))
        fits = False
        while not fits:
            room = budget - SLACK * max(len(w) for w in windows)
            if room < MIN_CONTEXT_TOKENS:
                return [], 0
            windows = cut_context(row.context, room, count=builder.count, sentences=sentences_of, token_ends=builder.token_ends)
            encoded = [encode(window) for window in windows]
            fits = all(length(window) <= limit for window in encoded)
            budget -= 0 if fits else max(1, budget // 10)
    by_text: list[list[Prompt]] = [[] for _ in texts]
    for head, tails in encoded:
        for prompts, tail in zip(by_text, tails, strict=True):
            prompts.append((*head, *tail))
    return by_text, len(windows)
