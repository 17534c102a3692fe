"""What every export does with a row: read it, say why it is left out, make its messages."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

NOT_SCORED = "not scored"
FLAGGED_SENTENCE = "flagged sentence"
NO_FLAGGED_SENTENCE = "no flagged sentence"
NO_QUESTION = "no question"
NEAR_DUPLICATE = "near-duplicate question"
NO_CHOSEN = "no supported response to the same question and context"
NO_REJECTED = "no hallucinated response to the same question and context"
NOT_BEST = "not the best-scored supported response"
SAME_TEXT = "same text as the other response"

SCALARS = ["row_id", "score", "verdict", "threshold", "flagged_sentences", "run_id"]
TEXTS = ["question", "context", "response"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What the user asked for; see `jobs.export.run.export`."""

    system: str | None
    context_in_prompt: bool
    only_clean: bool
    near_duplicates: float | None


@dataclass
class Tally:
    """Where each row went, counted while rows are made."""

    passed: int = 0
    used: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


Read = Callable[[Sequence[str]], Iterator[Row]]
"""Reads the rows of `scored/` with some columns, in the same order every time."""


def rows(scored: ScoredDataset, columns: Sequence[str]) -> Iterator[Row]:
    """Rows of `scored/`, with their partition."""
    for file, row in scored.rows(columns):
        yield {**row, "partition": file.partition_name}


def prompt(row: Row, options: Options) -> str:
    """The user's message: passages, then the question; empty where there is neither."""
    question = row["question"] or ""
    passages = [p for p in row["context"] or [] if p and p.strip()] if options.context_in_prompt else []
    if not passages:
        return question if question.strip() else ""
    context = "Context:\n" + "\n\n".join(passages)
    return f"{context}\n\nQuestion: {question}" if question.strip() else context


def asked(row: Row, options: Options) -> list[dict[str, str]]:
    """System message, if any, and the user's."""
    system = [{"role": "system", "content": options.system}] if options.system else []
    return [*system, {"role": "user", "content": prompt(row, options)}]


def answered(row: Row) -> dict[str, str]:
    """The response as a message."""
    return {"role": "assistant", "content": row["response"]}


def provenance(row: Row) -> Row:
    """Where a row comes from."""
    names = ("row_id", "partition", "run_id")
    return {**{name: row[name] for name in names}, "threshold": finite(row["threshold"])}


def finite(number: float | None) -> float | None:
    """JSON has no infinity, which a threshold that lets everything pass may be."""
    return number if number is not None and math.isfinite(number) else None


def reason(row: Row, options: Options) -> str | None:
    """Why a response is no training example; None if it is one."""
    if row["verdict"] is None:
        return NOT_SCORED
    if row["verdict"] != SUPPORTED:
        return HALLUCINATED
    if options.only_clean and row["flagged_sentences"]:
        return FLAGGED_SENTENCE
    return None if prompt(row, options) else NO_QUESTION


def key_of(row: Row) -> bytes:
    """Hash of question and context."""
    return blake2b(json.dumps([row["question"], row["context"]]).encode(), digest_size=16).digest()


def rank(row: Row) -> tuple[float, str, str]:
    """Best score first, then by id: an order that does not depend on files."""
    return -row["score"], row["row_id"], row["partition"]
