"""Contexts longer than a model's window: overlapping windows of whole passages or sentences. Nothing is truncated."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ragassay.pipeline.text.sentence_ends import Span


class Unit(NamedTuple):
    """A piece of a passage that is kept whole: passage number, [start, end) in it, tokens."""

    passage: int
    start: int
    end: int
    tokens: int


def cut_context(
    context: Sequence[str],
    budget: int,
    *,
    count: Callable[[Sequence[str]], list[int]],
    sentences: Callable[[str], list[Span]],
    token_ends: Callable[[str], list[int]],
) -> list[list[str]]:
    """Cut a context into windows that fit a budget of tokens.

    A passage that fits is kept whole; a longer one is cut at sentence ends; a sentence that is longer still, at token ends.
    Neighbouring windows share their last and first unit, where it takes at most half the budget.

    Args:
        context: Passages.
        budget: Tokens that the passages of one window may take together; >= 1.
        count: Tokens of each text.
        sentences: Sentence spans of a text.
        token_ends: Character offset at which each token of a text ends.

    Returns:
        Windows, each a list of texts in order; one window with the whole context where it fits.
    """
    sizes = count(context)
    if sum(sizes) <= budget:
        return [list(context)]
    units: list[Unit] = []
    for i, (passage, size) in enumerate(zip(context, sizes, strict=True)):
        if size <= budget:
            units.append(Unit(i, 0, len(passage), size))
        else:
            units.extend(_cut_passage(i, passage, budget, count, sentences, token_ends))
    return [_texts(context, window) for window in pack(units, budget)]


def pack(units: Sequence[Unit], budget: int) -> list[list[Unit]]:
    """Pack units in order into windows of at most `budget` tokens, each starting with the last unit of the one before
    where that unit takes at most half the budget and the next one still fits beside it."""
    windows: list[list[Unit]] = []
    current: list[Unit] = []
    used = 0
    for unit in units:
        if current and used + unit.tokens > budget:
            windows.append(current)
            last = current[-1]
            shared = last.tokens <= budget // 2 and last.tokens + unit.tokens <= budget
            current = [last] if shared else []
            used = last.tokens if shared else 0
        current.append(unit)
        used += unit.tokens
    return [*windows, current]


def _cut_passage(
    number: int,
    passage: str,
    budget: int,
    count: Callable[[Sequence[str]], list[int]],
    sentences: Callable[[str], list[Span]],
    token_ends: Callable[[str], list[int]],
) -> list[Unit]:
    spans = sentences(passage) or [(0, len(passage))]
    # From one sentence's start to the next one's, so that no character between them is lost.
    starts = [0, *(start for start, _ in spans[1:]), len(passage)]
    pieces = list(pairwise(starts))
    units: list[Unit] = []
    for (start, end), size in zip(pieces, count([passage[a:b] for a, b in pieces]), strict=True):
        if size <= budget:
            units.append(Unit(number, start, end, size))
            continue
        ends = token_ends(passage[start:end])
        at = start
        for last in [*ends[budget - 1 :: budget], end - start]:
            if start + last > at:
                units.append(Unit(number, at, start + last, min(budget, size)))
                at = start + last
    return units


def _texts(context: Sequence[str], window: Sequence[Unit]) -> list[str]:
    texts: list[str] = []
    for i, unit in enumerate(window):
        before = window[i - 1] if i else None
        if before and before.passage == unit.passage and before.end == unit.start:
            texts[-1] += context[unit.passage][unit.start : unit.end]
        else:
            texts.append(context[unit.passage][unit.start : unit.end])
    return texts
