"""The prompts of one row: every sentence in every window of its context, and what makes a row impossible to ask about."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ragassay.pipeline.contain import contain, contain_one, fault_of
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import Encoded, PromptBuilder, PromptEncoder
from ragassay.pipeline.slm.windows import cut_context
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.schemas.columns import Status

MIN_CONTEXT_TOKENS = 32
"""A window with less room than this for context is no window: the row is `too_long`."""

SLACK = 8
"""Tokens kept free a passage, for what a passage costs beyond its own tokens (a line break, a merge at its edge)."""

Prompt = tuple[int, ...]


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
        status: ok, or what makes the row impossible to ask about; prompts are empty then, and
        error: says why.
        note: What is missing in a row that can.
    """

    prompts: list[list[Prompt]] = field(default_factory=list)
    windows: int = 0
    whole: bool = False
    status: Status = Status.OK
    error: str | None = None
    note: str | None = None


def prompts_of_rows(
    rows: Sequence[Row], slm: Slm, builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]
) -> Iterator[RowPrompts]:
    """All prompts of rows: encoded together, put together one row at a time, since they hold a context as often as sentences.

    Args:
        rows: Rows with at least one sentence each.
        slm: The SLM's config.
        builder: Its prompts.
        limit: Tokens that a prompt may have.
        sentences_of: Splits a passage that is longer than the window.

    Yields:
        One entry a row.
    """
    texts = [slm.texts(row) for row in rows]
    asked = [(row.question, row.context, judged) for row, judged in zip(rows, texts, strict=True)]
    encoded: list[list[Encoded | RowPrompts]] = contain(
        len(rows), lambda some: [*builder.encode(asked[some])], lambda _, error: [_failed(error)]
    )

    def of_one(place: tuple[int, Encoded | RowPrompts]) -> RowPrompts:
        i, one = place
        if isinstance(one, RowPrompts):
            return one
        row = rows[i]
        if row.keep is not None and row.keep < len(row.context) and _length(one) > limit:
            return _of_best_passages(row, row.keep, texts[i], slm, builder, limit, sentences_of)
        return _of_row(row, texts[i], one, slm, builder, limit, sentences_of)

    for place in enumerate(chain.from_iterable(encoded)):
        yield contain_one(of_one, place, _failed)


def _failed(error: Exception) -> RowPrompts:
    return RowPrompts(status=Status.ERROR, error=f"prompts: {fault_of(error)}")


def _of_windows(encoded: Sequence[Encoded], slm: Slm) -> RowPrompts:
    by_text = zip(*(window.prompts() for window in encoded), strict=True)
    return RowPrompts(list(map(list, by_text)), windows=len(encoded), whole=slm.whole_response)


def _of_best_passages(
    row: Row,
    keep: int,
    texts: list[str],
    slm: Slm,
    builder: PromptBuilder,
    limit: int,
    sentences_of: Callable[[str], list[Span]],
) -> RowPrompts:
    """A row that does not fit the window with all of its passages, which stand best first: with so many of them."""
    best = replace(row, context=row.context[:keep])
    (one,) = builder.encode([(best.question, best.context, texts)])
    found = _of_row(best, texts, one, slm, builder, limit, sentences_of)
    note = (
        f"SLM {slm.name!r}: judged by the best {keep} of {len(row.context)} passages, which do not all fit its window of "
        f"{limit + 1} tokens"
    )
    return replace(found, note="; ".join(filter(None, [note, found.note])))


def _of_row(
    row: Row,
    texts: list[str],
    whole: Encoded,
    slm: Slm,
    builder: PromptBuilder,
    limit: int,
    sentences_of: Callable[[str], list[Span]],
) -> RowPrompts:
    """A row, in windows where it does not fit one; `whole` is what it would be."""
    if _length(whole) <= limit:
        return _of_windows([whole], slm)
    windows = context_windows(row, texts, whole, builder, limit, sentences_of)
    if windows:
        return _of_windows([encoded for _, encoded in windows], slm)
    named = f"SLM {slm.name!r}: "
    if slm.whole_response:
        without = whole._replace(tails=whole.tails[:-1])
        windows = context_windows(row, row.sentences, without, builder, limit, sentences_of)
        if windows:
            note = f"{named}the whole response does not fit its window of {limit + 1} tokens, so response_score is null"
            return replace(_of_windows([encoded for _, encoded in windows], slm), whole=False, note=note)
    return RowPrompts(
        status=Status.TOO_LONG,
        error=f"{named}question and sentence leave no room for context in its window of {limit + 1} tokens",
    )


def context_windows(
    row: Row,
    texts: Sequence[str],
    whole: Encoded,
    builder: PromptEncoder,
    limit: int,
    sentences_of: Callable[[str], list[Span]],
) -> list[tuple[Sequence[str], Encoded]]:
    """The prompts in each window of a row's context.

    Args:
        row: The row.
        texts: What stands behind the context.
        whole: Their prompts behind all of it.
        builder: Makes prompts.
        limit: Tokens that a prompt may have.
        sentences_of: Splits a passage that is longer than the window.

    Returns:
        Passages and prompts of each window; none where a text leaves no room for context.
    """

    def encode(windows: Sequence[Sequence[str]]) -> list[Encoded]:
        return builder.encode([(row.question, window, texts) for window in windows])

    windows, encoded = [row.context], [whole]
    budget = limit - _length(encode([[""]])[0])
    while any(_length(window) > limit for window in encoded):
        room = budget - SLACK * max(len(window) for window in windows)
        if room < MIN_CONTEXT_TOKENS:  # many short passages, of which a window holds but some
            room = budget // 2
        if room < MIN_CONTEXT_TOKENS:
            return []
        windows = cut_context(row.context, room, count=builder.count, sentences=sentences_of, token_ends=builder.token_ends)
        encoded = encode(windows)
        budget -= max(1, budget // 10)
    return list(zip(windows, encoded, strict=True))


def _length(encoded: Encoded) -> int:
    return len(encoded.head) + max(len(tail) for tail in encoded.tails)
