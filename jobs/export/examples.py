"""The responses that passed, as fine-tuning examples."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import (
    NEAR_DUPLICATE,
    SCALARS,
    TEXTS,
    Options,
    Read,
    Row,
    Tally,
    answered,
    asked,
    finite,
    provenance,
    rank,
    reason,
)
from ragassay.pipeline.text.near_duplicates import Sketch, near_duplicates, sketch_of
from ragassay.schemas.columns import SUPPORTED

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])

EXAMPLES = pa.schema(
    [
        ("messages", pa.list_(MESSAGE)),
        ("question", pa.string()),
        ("context", pa.list_(pa.string())),
        ("response", pa.string()),
        ("score", pa.float64()),
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("run_id", pa.string()),
        ("threshold", pa.float64()),
    ]
)


def examples(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """The rows that pass, with their messages."""
    similarity = options.near_duplicates
    repeated = set() if similarity is None else _repeated(read, options, similarity)
    for number, row in enumerate(read([*SCALARS, *TEXTS])):
        tally.passed += row["verdict"] == SUPPORTED
        why = NEAR_DUPLICATE if number in repeated else reason(row, options)
        if why:
            tally.left_out[why] += 1
            continue
        tally.used += 1
        yield {**row, "messages": [*asked(row, options), answered(row)]}


def messages(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """The rows that pass, as TRL's conversational format has them."""
    for row in examples(read, options, tally):
        yield {"messages": row["messages"], "score": finite(row["score"]), "provenance": provenance(row)}


def _repeated(read: Read, options: Options, similarity: float) -> set[int]:
    """Numbers of the rows whose question is as good as that of a better-scored row that stays."""
    ranked: list[tuple[tuple[float, str, str], int, Sketch]] = []
    for number, row in enumerate(read([*SCALARS, "question", "context"])):
        if reason(row, options) is None and (row["question"] or "").strip():
            ranked.append((rank(row), number, sketch_of(row["question"])))
    ranked.sort(key=lambda item: item[:2])
    numbers = [number for _, number, _ in ranked]
    return {numbers[i] for i in near_duplicates([sketch for *_, sketch in ranked], similarity)}
