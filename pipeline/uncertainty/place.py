"""A text behind its prompt, as token ids; behind a context that is longer than the window, once in every window of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.prompt import EncodedPrompts, PromptEncoder
from ragassay.pipeline.slm.row_prompts import encode_windows
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.pipeline.uncertainty.reader import Prompt

SentencesOf = Callable[[str], list[Span]]


@dataclass(frozen=True)
class Placed:
    """A text behind one window of its context: the prompt, and where in the text each token of it ends."""

    prompt: Prompt
    ends: Ints


def place_in_windows(row: Row, text: str, encoder: PromptEncoder, limit: int, sentences_of: SentencesOf) -> list[Placed]:
    """A text behind every window of a row's context.

    Args:
        row: Its question and context.
        text: The text.
        encoder: Makes prompts.
        limit: Tokens that prompt and text may have together.
        sentences_of: Splits a passage that is longer than the window.

    Returns:
        An entry a window; none where the text leaves no room for context.
    """
    whole = encoder.encode([(row.question, row.context, [text])])[0]
    windows: Sequence[tuple[Sequence[str], EncodedPrompts]] = [(row.context, whole)]
    if len(whole.head) + len(whole.tails[0]) > limit:
        windows = encode_windows(row, [text], whole, encoder, limit, sentences_of)
    return [_placed(row.question, context, text, encoder, encoded) for context, encoded in windows]


def place(question: str, context: Sequence[str], text: str, encoder: PromptEncoder) -> Placed:
    """A text behind a context."""
    (encoded,) = encoder.encode([(question, context, [text])])
    return _placed(question, context, text, encoder, encoded)


def _placed(question: str, context: Sequence[str], text: str, encoder: PromptEncoder, encoded: EncodedPrompts) -> Placed:
    """A text behind a context, encoded: what the tokenizer could not cut from what stands before it goes there."""
    ends = np.array(encoder.token_ends_in_prompt(question, context, text), dtype=np.int64)
    before = int((ends <= 0).sum())
    return Placed((encoded.head + encoded.tails[0][:before], encoded.tails[0][before:]), _without_space(text, ends[before:]))


def _without_space(text: str, ends: Ints) -> Ints:
    """Where the words of tokens end: a full stop with the line break behind it is of the sentence that it ends."""
    found = ends.copy()
    for i, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if word := text[start:end].rstrip():
            found[i] = start + len(word)
    return found
