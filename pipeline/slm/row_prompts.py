"""Build the prompts of rows: every sentence in every window of the context, or the reason why a row can't be scored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

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

T = TypeVar("T")


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


@dataclass(frozen=True)
class _Part:
    """Texts of a row that are judged by the same passages.

    Attributes:
        row: The row with these passages and sentences.
        numbers: Numbers of the texts in the whole row.
        has_whole_response: Whether the last text is the whole response.
    """

    row: Row
    numbers: list[int]
    has_whole_response: bool

    @property
    def texts(self) -> list[str]:
        """The sentences, and the whole response if it belongs to the part."""
        return [*self.row.sentences, *([self.row.response] if self.has_whole_response else [])]


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
    parts_of_rows = [_split_by_passages(row, slm) for row in rows]
    parts = list(chain.from_iterable(parts_of_rows))
    requests = [(part.row.question, part.row.context, part.texts) for part in parts]
    encoded: Iterator[EncodedPrompts | RowPrompts] = chain.from_iterable(
        contain(len(parts), lambda some: [*builder.encode(requests[some])], lambda _, error: [_failed(error)])
    )

    def build_one(part: _Part, encoded_part: EncodedPrompts | RowPrompts) -> RowPrompts:
        if isinstance(encoded_part, RowPrompts):
            return encoded_part
        keep = part.row.keep_best
        if keep is not None and keep < len(part.row.context) and _length(encoded_part) > limit:
            return _build_prompts_of_best_passages(part, keep, slm, builder, limit, split_sentences)
        return _build_prompts(part, encoded_part, slm, builder, limit, split_sentences)

    for row_parts in parts_of_rows:
        prompts = [contain_item(lambda pair: build_one(*pair), (part, next(encoded)), _failed) for part in row_parts]
        yield _join_parts(row_parts, prompts)


def encode_whole_prompts(row: Row, slm: Slm, builder: PromptBuilder) -> list[Prompt]:
    """Return the prompt of each text of a row with all passages that it is judged by, however long it is."""
    parts = _split_by_passages(row, slm)
    encoded = builder.encode([(part.row.question, part.row.context, part.texts) for part in parts])
    return _order_texts(parts, [part.prompts() for part in encoded])


def _split_by_passages(row: Row, slm: Slm) -> list[_Part]:
    """Split the texts of a row by the passages that they are judged by."""
    numbers_by_passages: dict[tuple[str, ...], list[int]] = {}
    texts = slm.texts_to_judge(row)
    for number in range(len(texts)):
        numbers_by_passages.setdefault(tuple(slm.select_passages(row, number)), []).append(number)
    return [
        _Part(
            replace(row, context=list(passages), sentences=[texts[n] for n in numbers if n < len(row.sentences)]),
            numbers,
            has_whole_response=numbers[-1] == len(row.sentences),
        )
        for passages, numbers in numbers_by_passages.items()
    ]


def _order_texts(parts: Sequence[_Part], results: Sequence[Sequence[T]]) -> list[T]:
    """Return the results of the texts of all parts in the order of the row; that of a whole response may be missing."""
    by_number: dict[int, T] = {}
    for part, of_part in zip(parts, results, strict=True):
        by_number |= zip(part.numbers, of_part, strict=False)
    return [by_number[number] for number in sorted(by_number)]


def _join_parts(parts: Sequence[_Part], prompts: Sequence[RowPrompts]) -> RowPrompts:
    """Join the prompts of the parts of a row, or return the reason why one of them can't be scored."""
    failed = next((part for part in prompts if part.status is not Status.OK), None)
    if failed is not None or len(parts) == 1:
        return failed or prompts[0]
    return RowPrompts(
        _order_texts(parts, [built.prompts for built in prompts]),
        windows=max(built.windows for built in prompts),
        has_whole_response=any(built.has_whole_response for built in prompts),
        note="; ".join(dict.fromkeys(built.note for built in prompts if built.note)) or None,
    )


def _failed(error: Exception) -> RowPrompts:
    return RowPrompts(status=Status.ERROR, error=f"prompts: {describe_fault(error)}")


def _combine_windows(encoded: Sequence[EncodedPrompts], *, has_whole_response: bool) -> RowPrompts:
    prompts_by_text = zip(*(window.prompts() for window in encoded), strict=True)
    return RowPrompts(list(map(list, prompts_by_text)), windows=len(encoded), has_whole_response=has_whole_response)


def _build_prompts_of_best_passages(
    part: _Part, keep: int, slm: Slm, builder: PromptBuilder, limit: int, split_sentences: Callable[[str], list[Span]]
) -> RowPrompts:
    """Build the prompts of a part with its best passages only; it does not fit the window with all passages."""
    row = part.row
    reduced = replace(part, row=replace(row, context=row.context[:keep]))
    (encoded,) = builder.encode([(row.question, reduced.row.context, part.texts)])
    row_prompts = _build_prompts(reduced, encoded, slm, builder, limit, split_sentences)
    note = (
        f"SLM {slm.name!r}: judged by the best {keep} of {len(row.context)} passages, because all passages do not fit its "
        f"window of {limit + 1} tokens"
    )
    return replace(row_prompts, note="; ".join(filter(None, [note, row_prompts.note])))


def _build_prompts(
    part: _Part,
    whole: EncodedPrompts,
    slm: Slm,
    builder: PromptBuilder,
    limit: int,
    split_sentences: Callable[[str], list[Span]],
) -> RowPrompts:
    """Build the prompts of a part, in several windows if it does not fit one; `whole` is its prompts with all its passages."""
    if _length(whole) <= limit:
        return _combine_windows([whole], has_whole_response=part.has_whole_response)
    row = part.row
    windows = encode_windows(row, part.texts, whole, builder, limit, split_sentences)
    if windows:
        return _combine_windows([encoded for _, encoded in windows], has_whole_response=part.has_whole_response)
    prefix = f"SLM {slm.name!r}: "
    if part.has_whole_response:
        note = f"{prefix}the whole response does not fit its window of {limit + 1} tokens, so response_score is null"
        if not row.sentences:
            return RowPrompts(note=note)
        sentence_prompts = whole._replace(tails=whole.tails[:-1])
        windows = encode_windows(row, row.sentences, sentence_prompts, builder, limit, split_sentences)
        if windows:
            return replace(_combine_windows([encoded for _, encoded in windows], has_whole_response=False), note=note)
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
