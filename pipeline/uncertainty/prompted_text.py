"""Encode prompts that a text follows: one for the whole context, or one per window of a context that is too long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.prompt import EncodedPrompts, PromptEncoder
from ragassay.pipeline.slm.row_prompts import encode_windows
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.pipeline.uncertainty.model import PromptAndText

SplitSentences = Callable[[str], list[Span]]
"""Text -> spans of its sentences."""


@dataclass(frozen=True)
class PromptedText:
    """A text after a prompt with one window of its context.

    Attributes:
        prompt: Token ids of the prompt and of the text.
        token_ends: End of each text token, as a character offset in the text.
    """

    prompt: PromptAndText
    token_ends: Ints


def make_window_prompts(
    row: Row, text: str, encoder: PromptEncoder, limit: int, split_sentences: SplitSentences
) -> list[PromptedText]:
    """Make a prompt for every window of a row's context, with the text after it.

    Args:
        row: Row with question and context.
        text: The text.
        encoder: Prompt encoder.
        limit: Maximum number of tokens of prompt and text together.
        split_sentences: Splits a passage that is longer than the window.

    Returns:
        An entry per window; none if question and text leave no room for context.
    """
    whole = encoder.encode([(row.question, row.context, [text])])[0]
    windows: Sequence[tuple[Sequence[str], EncodedPrompts]] = [(row.context, whole)]
    if len(whole.head) + len(whole.tails[0]) > limit:
        windows = encode_windows(row, [text], whole, encoder, limit, split_sentences)
    return [_locate_tokens(row.question, context, text, encoder, encoded) for context, encoded in windows]


def make_prompt(question: str, context: Sequence[str], text: str, encoder: PromptEncoder) -> PromptedText:
    """Make the prompt with the whole context, with the text after it."""
    (encoded,) = encoder.encode([(question, context, [text])])
    return _locate_tokens(question, context, text, encoder, encoded)


def _locate_tokens(
    question: str, context: Sequence[str], text: str, encoder: PromptEncoder, encoded: EncodedPrompts
) -> PromptedText:
    """Locate the tokens of the text. Tokens that the tokenizer merged with the prompt count as prompt."""
    ends = np.array(encoder.token_ends_in_prompt(question, context, text), dtype=np.int64)
    merged = int((ends <= 0).sum())
    return PromptedText((encoded.head + encoded.tails[0][:merged], encoded.tails[0][merged:]), _strip_ends(text, ends[merged:]))


def _strip_ends(text: str, ends: Ints) -> Ints:
    """Return token ends without trailing white space, so that a token of full stop and line break belongs to its sentence."""
    stripped = ends.copy()
    for i, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if word := text[start:end].rstrip():
            stripped[i] = start + len(word)
    return stripped
