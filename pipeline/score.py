"""Score sentences with one SLM: log P(yes) and log P(no) of every sentence, given question and context (eq. 3).

`score_rows` is a pure function from rows to results; `SlmScorer` is the actor that Ray Data keeps alive around it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.engines.protocol import Engine
from pipeline.errors import ModelError
from pipeline.prompt import Ids, PromptBuilder
from pipeline.slm import Slm, Value
from pipeline.split import Span
from pipeline.windows import cut_context
from schemas.columns import MEMBER, USAGE, Status

MIN_CONTEXT_TOKENS = 32
"""A window with less room than this for context is no window: the row is `too_long`."""

LOWEST = -1e4
"""log P below it is set to it: a probability that rounds to 0 must not make an infinite score."""

SLACK = 8
"""Tokens kept free a passage, for what a passage costs beyond its own tokens (a line break, a merge at its edge)."""


@dataclass
class Row:
    """A row to score: texts of the sentences, with the question and the passages they are judged by."""

    question: str
    context: list[str]
    response: str
    sentences: list[str]


@dataclass
class RowScore:
    """What an SLM says of a row; `error` is set, and everything else empty, where it can't be scored.

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
    error: str | None = None
    note: str | None = None


@dataclass
class _Plan:
    """Prompts of one row: for each text (sentences, then the whole response if asked for) its prompt in every window."""

    prompts: list[list[tuple[int, ...]]] = field(default_factory=list)
    windows: int = 0
    whole: bool = False
    error: str | None = None
    note: str | None = None


def member_values(value: Value, log_p_yes: npt.ArrayLike, log_p_no: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The number that is normalised, from log P(yes) and log P(no); see `pipeline.slm.Slm.value`."""
    yes, no = np.asarray(log_p_yes, dtype=np.float64), np.asarray(log_p_no, dtype=np.float64)
    match value:
        case Value.P_YES:
            return np.asarray(np.exp(yes))
        case Value.P_YES_SHARE:
            return np.asarray(np.exp(yes - np.logaddexp(yes, no)))
        case Value.LOG_ODDS:
            return yes - no


def score_rows(
    rows: Sequence[Row], slm: Slm, builder: PromptBuilder, engine: Engine, sentences_of: Callable[[str], list[Span]]
) -> list[RowScore]:
    """Score rows with one engine call.

    Identical prompts are sent once. Prompts are sent in the order of their tokens, so that all sentences of a response, and
    all responses to the same context, stand together and share their prefix. A sentence's score is its best window's.

    Args:
        rows: Rows with at least one sentence each.
        slm: The SLM's config.
        builder: Its prompts.
        engine: Its engine.
        sentences_of: Splits a passage that is longer than the window.

    Returns:
        One result a row, in order.

    Raises:
        ModelError: The engine gave NaN.
    """
    plans = [_plan(row, slm, builder, engine.max_model_len - 1, sentences_of) for row in rows]
    owner: dict[tuple[int, ...], int] = {}
    for i, plan in enumerate(plans):
        for text in plan.prompts:
            for prompt in text:
                owner.setdefault(prompt, i)
    prompts = sorted(owner)
    if not prompts:
        return [RowScore(error=plan.error) for plan in plans]

    started = time.perf_counter()
    output = engine.label_logprobs(prompts, [*builder.yes, *builder.no])
    seconds = time.perf_counter() - started

    if np.isnan(output.logprobs).any():
        raise ModelError(f"SLM {slm.name!r} gave NaN for a prompt: try dtype float32; its scores can't be trusted")
    logprobs = np.maximum(output.logprobs, LOWEST)
    yes = np.logaddexp.reduce(logprobs[:, : len(builder.yes)], axis=1)
    no = np.logaddexp.reduce(logprobs[:, len(builder.yes) :], axis=1)
    values = member_values(slm.value, yes, no)
    place = {prompt: i for i, prompt in enumerate(prompts)}

    results = [RowScore(error=plan.error, note=plan.note, windows=plan.windows) for plan in plans]
    for plan, result in zip(plans, results, strict=True):
        best = [max((place[p] for p in text), key=lambda i: values[i]) for text in plan.prompts]
        if plan.whole:
            result.response_score = float(values[best.pop()])
        result.log_p_yes = [float(yes[i]) for i in best]
        result.log_p_no = [float(no[i]) for i in best]
    total = max(1, int(output.tokens_computed.sum()))
    for prompt, computed, reused in zip(prompts, output.tokens_computed, output.tokens_reused, strict=True):
        result = results[owner[prompt]]
        result.prompts += 1
        result.tokens_computed += int(computed)
        result.tokens_reused += int(reused)
        result.engine_seconds += seconds * float(computed) / total
    return results


def _plan(row: Row, slm: Slm, builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]) -> _Plan:
    plan = _Plan()
    texts = [*row.sentences, *([row.response] if slm.whole_response else [])]
    plan.whole = slm.whole_response
    plan.prompts, plan.windows = _prompts(row, texts, builder, limit, sentences_of)
    if plan.whole and not plan.prompts:
        plan.note = (
            f"SLM {slm.name!r}: the whole response does not fit its window of {limit + 1} tokens, so response_score is null"
        )
        plan.whole = False
        plan.prompts, plan.windows = _prompts(row, row.sentences, builder, limit, sentences_of)
    if not plan.prompts:
        plan.error = f"SLM {slm.name!r}: question and sentence leave no room for context in its window of {limit + 1} tokens"
        plan.note = None
    return plan


def _prompts(
    row: Row, texts: list[str], builder: PromptBuilder, limit: int, sentences_of: Callable[[str], list[Span]]
) -> tuple[list[list[tuple[int, ...]]], int]:
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
    by_text: list[list[tuple[int, ...]]] = [[] for _ in texts]
    for head, tails in encoded:
        for prompts, tail in zip(by_text, tails, strict=True):
            prompts.append((*head, *tail))
    return by_text, len(windows)


def attach(table: pa.Table, slm: Slm, places: Sequence[int], results: Sequence[RowScore]) -> pa.Table:
    """Add one SLM's results to a batch of rows.

    Args:
        table: Rows with `sentences`, `members`, `usage`, `context_windows`, `status`, `error`.
        slm: The SLM.
        places: Row number of each result.
        results: One result a row that was sent to the SLM.

    Returns:
        The table with `members` and `usage` one entry longer in the rows scored; rows that could not be scored have a status
        and an error, and no members.
    """
    columns = {name: table[name].to_pylist() for name in ("members", "usage", "context_windows", "status", "error")}
    for i, result in zip(places, results, strict=True):
        if result.error:
            columns["status"][i], columns["error"][i] = Status.TOO_LONG.value, result.error
            columns["members"][i] = columns["context_windows"][i] = None
            continue
        values = member_values(slm.value, result.log_p_yes, result.log_p_no)
        columns["members"][i].append(
            {
                "name": slm.name,
                "sentence_scores": values.tolist(),
                "response_score": result.response_score,
                "log_p_yes": result.log_p_yes,
                "log_p_no": result.log_p_no,
            }
        )
        columns["usage"][i].append(
            {
                "name": slm.name,
                "prompts": result.prompts,
                "tokens_computed": result.tokens_computed,
                "tokens_reused": result.tokens_reused,
                "engine_seconds": result.engine_seconds,
            }
        )
        columns["context_windows"][i] = max(columns["context_windows"][i] or 0, result.windows)
        if result.note:
            columns["error"][i] = "; ".join(filter(None, [columns["error"][i], result.note]))
    types = {"members": pa.list_(MEMBER), "usage": pa.list_(USAGE), "context_windows": pa.int32()}
    for name, values_of_rows in columns.items():
        field_type = types.get(name, pa.string())
        column = pa.array(values_of_rows, type=field_type)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table


class SlmScorer:
    """Actor: holds one SLM's engine and scores batches of rows."""

    def __init__(self, slm: Slm, splitter: tuple[str, str], threads: int) -> None:
        """Load the engine.

        Args:
            slm: The SLM's config.
            splitter: Name and language of the splitter, for passages longer than the window.
            threads: CPU threads of this replica.
        """
        from pipeline.engines.protocol import load_engine
        from pipeline.split import load_splitter, split

        self._slm = slm
        self._fault: ModelError | None = None
        try:
            self._engine = load_engine(slm, threads)
            self._builder = PromptBuilder(slm, self._engine.tokenizer)
        except ModelError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error
        nlp: list[Any] = []

        def sentences_of(text: str) -> list[Span]:
            if not nlp:
                nlp.append(load_splitter(*splitter))
            return split(nlp[0], [text])[0]

        self._sentences_of = sentences_of

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows whose status is ok; leave the others as they are.

        Raises:
            ModelError: The model could not be loaded, or gave NaN.
        """
        if self._fault:
            raise self._fault
        places = [i for i, status in enumerate(table["status"].to_pylist()) if status == Status.OK]
        picked = table.select(["question", "context", "response", "sentences"]).take(pa.array(places, pa.int64())).to_pylist()
        rows = [
            Row(r["question"] or "", [p for p in r["context"] if p], r["response"], [s["text"] for s in r["sentences"]])
            for r in picked
        ]
        results = score_rows(rows, self._slm, self._builder, self._engine, self._sentences_of) if rows else []
        return attach(table, self._slm, places, results)
