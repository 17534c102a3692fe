"""Read the rows of an export, decide which are omitted, and make their messages."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from ragassay.jobs.output.scored_dataset import ScoredDataset, finite_or_none
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, SentenceState

NOT_SCORED = "not scored"
DOUBTFUL_SENTENCE = "doubtful sentence"
NO_QUESTION = "no question"
NEAR_DUPLICATE = "near-duplicate question"
NO_CHOSEN = "no supported response to the same question and context"
NO_REJECTED = "no hallucinated response to the same question and context"
NOT_BEST = "not the best-scored supported response"
SAME_TEXT = "same text as the other response"

SCALARS = ["row_id", "score", "probability", "verdict", "threshold", "sentences.list.element.state", "run_id"]
TEXTS = ["question", "context", "response"]

MESSAGES_TYPE = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
PROVENANCE_TYPE = pa.struct(
    [("row_id", pa.string()), ("partition", pa.string()), ("run_id", pa.string()), ("threshold", pa.float64())]
)

Row = dict[str, Any]


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export; see `jobs.export.command.export`."""

    system: str | None
    context_in_prompt: bool
    only_clean: bool
    near_duplicates: float | None


@dataclass
class ExportTally:
    """Counts of the rows, updated while they are exported."""

    supported: int = 0
    used: int = 0
    omitted: Counter[str] = field(default_factory=Counter)


RowReader = Callable[[Sequence[str]], Iterator[Row]]
"""Reads the rows of `scored/` with some columns, in the same order every time."""


def read_scored_rows(scored: ScoredDataset, columns: Sequence[str]) -> Iterator[Row]:
    """Read the rows of `scored/`, with their partition."""
    for file, row in scored.read_rows(columns):
        yield {**row, "partition": file.partition_name}


def make_prompt(row: Row, options: ExportOptions) -> str:
    """Make the user's message: passages, then the question; empty without both."""
    question = row["question"] or ""
    passages = [p for p in row["context"] or [] if p and p.strip()] if options.context_in_prompt else []
    if not passages:
        return question if question.strip() else ""
    context = "Context:\n" + "\n\n".join(passages)
    return f"{context}\n\nQuestion: {question}" if question.strip() else context


def make_prompt_messages(row: Row, options: ExportOptions) -> list[dict[str, str]]:
    """Make the system message, if any, and the user's message."""
    system = [{"role": "system", "content": options.system}] if options.system else []
    return [*system, {"role": "user", "content": make_prompt(row, options)}]


def make_response_message(row: Row) -> dict[str, str]:
    """Make a message of the response."""
    return {"role": "assistant", "content": row["response"]}


def make_provenance(row: Row) -> Row:
    """Return the origin of a row."""
    names = ("row_id", "partition", "run_id")
    return {**{name: row[name] for name in names}, "threshold": finite_or_none(row["threshold"])}


def find_omission_reason(row: Row, options: ExportOptions) -> str | None:
    """Return why a response is not a training example; None if it is one."""
    if row["verdict"] is None:
        return NOT_SCORED
    if row["verdict"] != SUPPORTED:
        return HALLUCINATED
    if options.only_clean and any(sentence["state"] == SentenceState.DOUBTFUL for sentence in row["sentences"]):
        return DOUBTFUL_SENTENCE
    return None if make_prompt(row, options) else NO_QUESTION


def hash_prompt(row: Row) -> bytes:
    """Hash question and context."""
    return blake2b(json.dumps([row["question"], row["context"]]).encode(), digest_size=16).digest()


def rank_row(row: Row) -> tuple[float, str, str]:
    """Rank a row: best score first, then by id, so that the order does not depend on files."""
    return -row["score"], row["row_id"], row["partition"]
