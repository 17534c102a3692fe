"""Contexts longer than a model's window: overlapping windows of whole passages or sentences. Nothing is truncated."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ragassay.pipeline.text.sentence_ends import Span


class ContextPiece(NamedTuple):
    """A piece of a passage that is not cut further: passage number, [start, end) in the passage, tokens."""

    passage: int
    start: int
    end: int
    tokens: int


def cut_context(
    context: Sequence[str],
    budget: int,
    *,
    count_tokens: Callable[[Sequence[str]], list[int]],
    find_sentences: Callable[[str], list[Span]],
    find_token_ends: Callable[[str], list[int]],
) -> list[list[str]]:
    """Cut a context into windows that fit a budget of tokens.

    A passage that fits stays whole; a longer passage is cut at sentence ends; a longer sentence is cut at token ends. Adjacent
    windows share the last piece of the earlier window if it takes at most half the budget.

    Args:
        context: Passages.
        budget: Maximum number of tokens of a window's passages; >= 1.
        count_tokens: Returns the number of tokens of each text.
        find_sentences: Returns the sentence spans of a text.
        find_token_ends: Returns the character offset at which each token of a text ends.

    Returns:
        Windows, each a list of texts in order; one window with the whole context if it fits.
    """
    sizes = count_tokens(context)
    if sum(sizes) <= budget:
        return [list(context)]
    pieces: list[ContextPiece] = []
    for number, (passage, size) in enumerate(zip(context, sizes, strict=True)):
        if size <= budget:
            pieces.append(ContextPiece(number, 0, len(passage), size))
        else:
            pieces.extend(_cut_passage(number, passage, budget, count_tokens, find_sentences, find_token_ends))
    return [_join_pieces(context, window) for window in pack_windows(pieces, budget)]


def pack_windows(pieces: Sequence[ContextPiece], budget: int) -> list[list[ContextPiece]]:
    """Pack pieces in order into windows of at most `budget` tokens. Each window starts with the last piece of the window before
    if that piece takes at most half the budget and the next piece still fits."""
    windows: list[list[ContextPiece]] = []
    current: list[ContextPiece] = []
    used = 0
    for piece in pieces:
        if current and used + piece.tokens > budget:
            windows.append(current)
            last = current[-1]
            is_shared = last.tokens <= budget // 2 and last.tokens + piece.tokens <= budget
            current = [last] if is_shared else []
            used = last.tokens if is_shared else 0
        current.append(piece)
        used += piece.tokens
    return [*windows, current]


def _cut_passage(
    number: int,
    passage: str,
    budget: int,
    count_tokens: Callable[[Sequence[str]], list[int]],
    find_sentences: Callable[[str], list[Span]],
    find_token_ends: Callable[[str], list[int]],
) -> list[ContextPiece]:
    spans = find_sentences(passage) or [(0, len(passage))]
    # From each sentence's start to the next, so that no character between sentences is lost.
    starts = [0, *(start for start, _ in spans[1:]), len(passage)]
    ranges = list(pairwise(starts))
    pieces: list[ContextPiece] = []
    for (start, end), size in zip(
        ranges, count_tokens([passage[range_start:range_end] for range_start, range_end in ranges]), strict=True
    ):
        if size <= budget:
            pieces.append(ContextPiece(number, start, end, size))
            continue
        ends = find_token_ends(passage[start:end])
        position = start
        for token_end in [*ends[budget - 1 :: budget], end - start]:
            if start + token_end > position:
                pieces.append(ContextPiece(number, position, start + token_end, min(budget, size)))
                position = start + token_end
    return pieces


def _join_pieces(context: Sequence[str], window: Sequence[ContextPiece]) -> list[str]:
    texts: list[str] = []
    for i, piece in enumerate(window):
        previous = window[i - 1] if i else None
        if previous and previous.passage == piece.passage and previous.end == piece.start:
            texts[-1] += context[piece.passage][piece.start : piece.end]
        else:
            texts.append(context[piece.passage][piece.start : piece.end])
    return texts
