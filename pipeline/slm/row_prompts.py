"""Build the prompts of rows: every sentence in every window of the context, or the reason why a row can't be scored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ragassay.pipeline.contain import contain, contain_item, describe_fault
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import EncodedPrompts, PromptBuilder, PromptEncoder
from ragassay.pipeline.slm.windows import cut_context
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.schemas.columns import Status

MIN_CONTEXT_TOKENS = 32
"""Minimum number of context tokens in a window; a row with less room is `too_long`."""

PASSAGE_OVERHEAD_TOKENS = 8
"""Tokens reserved per passage for overhead beyond its own tokens (a line break, a merge at its edge)."""

Prompt = tuple[int, ...]


def prefix_sort_key(row: Row) -> tuple[list[str], str]:
    """Return a sort key that groups rows with a shared prefix: rows with the same context, and among them the same question."""
    return row.context, row.question


@dataclass
class RowPrompts:
    """Prompts of one row.

    Attributes:
        prompts: For each text (sentences, then the whole response if requested) its prompt in every window.
        windows: Number of context windows.
        has_whole_response: Whether the whole response is the last text.
        status: ok, or why the row can't be scored; then `prompts` is empty.
        error: Reason in words if the status is not ok.
        note: Missing parts of a row with status ok, in words.
    """

    prompts: list[list[Prompt]] = field(default_factory=list)
    windows: int = 0
    has_whole_response: bool = False
    status: Status = Status.OK
    error: str | None = None
    note: str | None = None


def build_row_prompts(
    rows: Sequence[Row], slm: Slm, builder: PromptBuilder, limit: int, split_sentences: Callable[[str], list[Span]]
) -> Iterator[RowPrompts]:
    """Yield all prompts of each row. Rows are encoded together, but built one at a time: each prompt contains a whole context.

    Args:
        rows: Rows with at least one sentence each.
        slm: Settings of the SLM.
        builder: Prompt builder of the SLM.
        limit: Maximum number of tokens of a prompt.
        split_sentences: Splits a passage that is longer than the window.

    Yields:
        One entry per row.
    """
    texts = [slm.texts_to_judge(row) for row in rows]
    requests = [(row.question, row.context, judged) for row, judged in zip(rows, texts, strict=True)]
    encoded: list[list[EncodedPrompts | RowPrompts]] = contain(
        len(rows), lambda some: [*builder.encode(requests[some])], lambda _, error: [_failed(error)]
    )

    def build_one(numbered: tuple[int, EncodedPrompts | RowPrompts]) -> RowPrompts:
        i, encoded_row = numbered
        if isinstance(encoded_row, RowPrompts):
            return encoded_row
        row = rows[i]
        if row.keep_best is not None and row.keep_best < len(row.context) and _length(encoded_row) > limit:
            return _build_prompts_of_best_passages(row, row.keep_best, texts[i], slm, builder, limit, split_sentences)
        return _build_prompts(row, texts[i], encoded_row, slm, builder, limit, split_sentences)

    for numbered in enumerate(chain.from_iterable(encoded)):
        yield contain_item(build_one, numbered, _failed)


def _failed(error: Exception) -> RowPrompts:
    return RowPrompts(status=Status.ERROR, error=f"prompts: {describe_fault(error)}")


def _combine_windows(encoded: Sequence[EncodedPrompts], slm: Slm) -> RowPrompts:
    prompts_by_text = zip(*(window.prompts() for window in encoded), strict=True)
    return RowPrompts(list(map(list, prompts_by_text)), windows=len(encoded), has_whole_response=slm.whole_response)


def _build_prompts_of_best_passages(
    row: Row,
    keep: int,
    texts: list[str],
    slm: Slm,
    builder: PromptBuilder,
    limit: int,
    split_sentences: Callable[[str], list[Span]],
) -> RowPrompts:
    """Build the prompts of a row with its best passages only; the row does not fit the window with all passages."""
    reduced = replace(row, context=row.context[:keep])
    (encoded_row,) = builder.encode([(reduced.question, reduced.context, texts)])
    row_prompts = _build_prompts(reduced, texts, encoded_row, slm, builder, limit, split_sentences)
    note = (
        f"SLM {slm.name!r}: judged by the best {keep} of {len(row.context)} passages, because all passages do not fit its "
        f"window of {limit + 1} tokens"
    )
    return replace(row_prompts, note="; ".join(filter(None, [note, row_prompts.note])))


def _build_prompts(
    row: Row,
    texts: list[str],
    whole: EncodedPrompts,
    slm: Slm,
    builder: PromptBuilder,
    limit: int,
    split_sentences: Callable[[str], list[Span]],
) -> RowPrompts:
    """Build the prompts of a row, in several windows if it does not fit one; `whole` is its prompts with the whole context."""
    if _length(whole) <= limit:
        return _combine_windows([whole], slm)
    windows = encode_windows(row, texts, whole, builder, limit, split_sentences)
    if windows:
        return _combine_windows([encoded for _, encoded in windows], slm)
    prefix = f"SLM {slm.name!r}: "
    if slm.whole_response:
        sentence_prompts = whole._replace(tails=whole.tails[:-1])
        windows = encode_windows(row, row.sentences, sentence_prompts, builder, limit, split_sentences)
        if windows:
            note = f"{prefix}the whole response does not fit its window of {limit + 1} tokens, so response_score is null"
            return replace(_combine_windows([encoded for _, encoded in windows], slm), has_whole_response=False, note=note)
    return RowPrompts(
        status=Status.TOO_LONG,
        error=f"{prefix}question and sentence leave no room for context in its window of {limit + 1} tokens",
    )


def encode_windows(
    row: Row,
    texts: Sequence[str],
    whole: EncodedPrompts,
    builder: PromptEncoder,
    limit: int,
    split_sentences: Callable[[str], list[Span]],
) -> list[tuple[Sequence[str], EncodedPrompts]]:
    """Encode the prompts of a row in each window of its context.

    Args:
        row: The row.
        texts: Texts after the context.
        whole: Their prompts with the whole context.
        builder: Prompt encoder.
        limit: Maximum number of tokens of a prompt.
        split_sentences: Splits a passage that is longer than the window.

    Returns:
        Passages and prompts of each window; empty if a text leaves no room for context.
    """

    def encode(windows: Sequence[Sequence[str]]) -> list[EncodedPrompts]:
        return builder.encode([(row.question, window, texts) for window in windows])

    windows, encoded = [row.context], [whole]
    budget = limit - _length(encode([[""]])[0])
    while any(_length(window) > limit for window in encoded):
        room = budget - PASSAGE_OVERHEAD_TOKENS * max(len(window) for window in windows)
        if room < MIN_CONTEXT_TOKENS:  # many short passages, of which a window contains only some
            room = budget // 2
        if room < MIN_CONTEXT_TOKENS:
            return []
        windows = cut_context(
            row.context, room, count_tokens=builder.count, find_sentences=split_sentences, find_token_ends=builder.token_ends
        )
        encoded = encode(windows)
        budget -= max(1, budget // 10)
    return list(zip(windows, encoded, strict=True))


def _length(encoded: EncodedPrompts) -> int:
    return len(encoded.head) + max(len(tail) for tail in encoded.tails)
