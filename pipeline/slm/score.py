"""Score sentences with one SLM: log P(yes) and log P(no) of every sentence, given question and context (eq. 3).

Pure functions from rows to results; `pipeline.stages.slm` is the actor around them.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from secrets import token_bytes

import numpy as np
import pyarrow as pa

from ragassay.pipeline.attach import Addition, attach, not_scored
from ragassay.pipeline.contain import contain, contain_one, fault_of, with_status
from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.members import Value, member_values
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.row_prompts import Prompt, RowPrompts, prompt_order, prompts_of_rows
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.schemas.columns import Status, raw_columns

SLM_COLUMNS = raw_columns("members", "usage", "context_windows", "status", "error")
"""Columns that the stage of an SLM writes."""

LOWEST = -1e4
"""log P below it is set to it: a probability that rounds to 0 must not make an infinite score."""

STEPS_A_CALL = 64
"""An engine call gets prompts of about so many engine steps' tokens, shared ones counted every time. It bounds the memory that
prompts take, whatever the size of a block, and is long enough that its last, half-empty step does not matter."""


MAY_PASS = (Status.ERROR, Status.NO_ANSWER)
"""Statuses that the same row may not have when it is asked again."""

ENCODED_ROWS = 256
"""Rows that are given to the tokenizer at once: enough for all of its threads."""


@dataclass
class RowScore:
    """What an SLM says of a row; `status` and `error` say why it can't be scored, and everything else is empty then.

    `note` says what is missing in a row that is scored.
    """

    log_p_yes: list[float] = field(default_factory=list)
    log_p_no: list[float] = field(default_factory=list)
    response_score: float | None = None
    windows: int = 0
    prompts: int = 0
    tokens_computed: int = 0
    tokens_reused: int = 0
    engine_seconds: float = 0.0
    idle_seconds: float = 0.0
    status: Status = Status.OK
    error: str | None = None
    note: str | None = None

    def repeated(self) -> "RowScore":
        """The same result for a repeated row, which cost nothing."""
        return replace(self, prompts=0, tokens_computed=0, tokens_reused=0, engine_seconds=0.0, idle_seconds=0.0)


def row_digest(row: Row) -> bytes:
    """16 bytes that are the same for rows with the same question, context and response."""
    digest = blake2b(digest_size=16)
    for text in (row.question, row.response, *row.context):
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.digest()


def score_rows(
    rows: Sequence[Row],
    slm: Slm,
    builder: PromptBuilder,
    engine: Engine,
    sentences_of: Callable[[str], list[Span]],
    known: MutableMapping[bytes, RowScore] | None = None,
) -> list[RowScore]:
    """Score rows with as few engine calls as memory allows.

    A repeated row (same question, context and response) is scored once, and so is an identical prompt within a call. Prompts
    are sent in the order of their tokens, so that all sentences of a response, and all responses to the same context, stand
    together and share their prefix. A sentence's score is its best window's.

    Args:
        rows: Rows with at least one sentence each.
        slm: The SLM's config.
        builder: Its prompts.
        engine: Its engine.
        sentences_of: Splits a passage that is longer than the window.
        known: Digest of a row -> its result, from before; the new ones are added.

    Returns:
        One result a row, in order.

    Raises:
        ModelError: The engine gave NaN.
    """

    def score(ordered: Sequence[Row]) -> Iterator[RowScore]:
        for call in calls(ordered, slm, builder, engine.max_model_len - 1, sentences_of):
            yield from _ask(call, slm, builder, engine)

    return score_once(rows, {} if known is None else known, score)


def score_once(
    rows: Sequence[Row], known: MutableMapping[bytes, RowScore], score: Callable[[Sequence[Row]], Iterable[RowScore]]
) -> list[RowScore]:
    """Score rows, repeated ones once.

    Args:
        rows: The rows.
        known: Digest of a row -> its result, from before; the new ones are added, but for faults, which may pass.
        score: Scores different rows, those that share a prefix next to each other.

    Returns:
        One result a row, in order.
    """
    digests = [contain_one(row_digest, row, lambda _: token_bytes()) for row in rows]
    found = {digest: result for digest in digests if (result := known.get(digest))}  # another thread may drop it meanwhile
    new = {digest: row for digest, row in zip(digests, rows, strict=True) if digest not in found}
    ordered = sorted(new.items(), key=lambda item: prompt_order(item[1]))
    fresh = dict(zip((digest for digest, _ in ordered), score([row for _, row in ordered]), strict=True))
    free = {digest: result.repeated() for digest, result in (found | fresh).items()}
    known.update((digest, free[digest]) for digest, result in fresh.items() if result.status not in MAY_PASS)
    return [fresh.pop(digest, free[digest]) for digest in digests]


def calls(
    rows: Sequence[Row], slm: Slm, builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]
) -> Iterator[list[RowPrompts]]:
    """The prompts of rows, of as many at a time as one engine call takes; see `STEPS_A_CALL`."""
    room = STEPS_A_CALL * slm.local.tokens_a_step
    call: list[RowPrompts] = []
    tokens = 0
    for start in range(0, len(rows), ENCODED_ROWS):
        for prompts in prompts_of_rows(rows[start : start + ENCODED_ROWS], slm, builder, limit, sentences_of):
            size = sum(len(prompt) for text in prompts.prompts for prompt in text)
            if call and tokens + size > room:
                yield call
                call, tokens = [], 0
            call.append(prompts)
            tokens += size
    if call:
        yield call


def in_token_order(call: Sequence[RowPrompts]) -> dict[Prompt, int]:
    """The different prompts of a call, in the order they are sent -> the row that is charged for each."""
    owner: dict[Prompt, int] = {}
    for i, row in enumerate(call):
        for text in row.prompts:
            for prompt in text:
                owner.setdefault(prompt, i)
    return dict(sorted(owner.items()))


def _ask(call: Sequence[RowPrompts], slm: Slm, builder: PromptBuilder, engine: Engine) -> list[RowScore]:
    """One engine call."""
    owner = in_token_order(call)
    prompts = list(owner)
    if not prompts:
        return [RowScore(status=row.status, error=row.error) for row in call]
    output = engine.label_logprobs(prompts, [*builder.yes, *builder.no])
    if np.isnan(output.logprobs).any():
        raise ModelError(errors.GIVES_NAN, member=slm.name)
    logprobs = np.maximum(output.logprobs, LOWEST)
    yes = np.logaddexp.reduce(logprobs[:, : len(builder.yes)], axis=1)
    no = np.logaddexp.reduce(logprobs[:, len(builder.yes) :], axis=1)
    values = member_values(Value(slm.value), yes, no)
    place = {prompt: i for i, prompt in enumerate(prompts)}

    def read(row: RowPrompts) -> RowScore:
        result = RowScore(status=row.status, error=row.error, note=row.note, windows=row.windows)
        best = [max((place[p] for p in text), key=lambda i: values[i]) for text in row.prompts]
        if row.whole:
            result.response_score = float(values[best.pop()])
        result.log_p_yes = [float(yes[i]) for i in best]
        result.log_p_no = [float(no[i]) for i in best]
        return result

    def failed(error: Exception) -> RowScore:
        return RowScore(status=Status.ERROR, error=f"SLM {slm.name!r}: {fault_of(error)}")

    # One by one: a fault behind the engine must not have its work done again for other rows.
    results = [contain_one(read, row, failed) for row in call]
    total = max(1, int(output.tokens_computed.sum()))
    for prompt, computed, reused in zip(prompts, output.tokens_computed, output.tokens_reused, strict=True):
        result = results[owner[prompt]]
        result.prompts += 1
        result.tokens_computed += int(computed)
        result.tokens_reused += int(reused)
        result.engine_seconds += output.seconds * float(computed) / total
        result.idle_seconds += output.idle_seconds * float(computed) / total
    return results


def attach_scores(table: pa.Table, slm: Slm, places: Sequence[int], results: Sequence[RowScore]) -> pa.Table:
    """Attach one SLM's results to a batch of rows; a row for which that fails gets the status `error`.

    Args:
        table: Rows with the columns SLM_COLUMNS.
        slm: The SLM.
        places: Row number of each result.
        results: One result a row that was sent to the SLM.
    """
    of_place = dict(zip(places, results, strict=True))

    def attached(some: slice) -> pa.Table:
        rows = [place for place in range(some.start, some.stop) if place in of_place]
        return attach(table[some], SLM_COLUMNS, {place - some.start: _addition(slm, of_place[place]) for place in rows})

    def failed(place: int, error: Exception) -> pa.Table:
        return with_status(table.slice(place, 1), Status.ERROR, f"SLM {slm.name!r}: {fault_of(error)}")

    return pa.concat_tables(contain(table.num_rows, attached, failed))


def _addition(slm: Slm, result: RowScore) -> Addition:
    if result.status is not Status.OK:
        return not_scored(result.status, result.error)
    member = {
        "name": slm.name,
        "sentence_scores": member_values(Value(slm.value), result.log_p_yes, result.log_p_no).tolist(),
        "response_score": result.response_score,
        "log_p_yes": result.log_p_yes,
        "log_p_no": result.log_p_no,
    }
    usage = {
        "name": slm.name,
        "prompts": result.prompts,
        "tokens_computed": result.tokens_computed,
        "tokens_reused": result.tokens_reused,
        "engine_seconds": result.engine_seconds,
        "idle_seconds": result.idle_seconds,
    }
    return {"members": [member], "usage": [usage], "context_windows": result.windows, "error": result.note}
