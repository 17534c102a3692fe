"""Make fine-tuning examples from supported responses."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import (
    MESSAGES_TYPE,
    NEAR_DUPLICATE,
    PROVENANCE_TYPE,
    SCALARS,
    TEXTS,
    ExportOptions,
    ExportTally,
    Row,
    RowReader,
    find_omission_reason,
    make_prompt_messages,
    make_provenance,
    make_response_message,
    rank_row,
)
from ragassay.jobs.output.scored_dataset import finite_or_none
from ragassay.pipeline.text.near_duplicates import ShingleHashes, find_near_duplicates, hash_shingles
from ragassay.schemas.columns import SUPPORTED

EXAMPLE_SCHEMA = pa.schema(
    [
        ("messages", MESSAGES_TYPE),
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

TRL_SCHEMA = pa.schema([("messages", MESSAGES_TYPE), ("score", pa.float64()), ("provenance", PROVENANCE_TYPE)])


def make_examples(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """Make an example with messages from each row that passes."""
    similarity = options.near_duplicates
    repeated = set() if similarity is None else _find_near_duplicates(read, options, similarity)
    for number, row in enumerate(read([*SCALARS, *TEXTS])):
        tally.supported += row["verdict"] == SUPPORTED
        reason = NEAR_DUPLICATE if number in repeated else find_omission_reason(row, options)
        if reason:
            tally.omitted[reason] += 1
            continue
        tally.used += 1
        example = {**row, "score": finite_or_none(row["score"]), "threshold": finite_or_none(row["threshold"])}
        example["messages"] = [*make_prompt_messages(row, options), make_response_message(row)]
        yield {name: example[name] for name in EXAMPLE_SCHEMA.names}


def make_trl_examples(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """Make examples in TRL's conversational format."""
    for row in make_examples(read, options, tally):
        yield {"messages": row["messages"], "score": row["score"], "provenance": make_provenance(row)}


def _find_near_duplicates(read: RowReader, options: ExportOptions, similarity: float) -> set[int]:
    """Find rows whose question nearly equals that of a better-scored row: their row numbers."""
    ranked: list[tuple[tuple[float, str, str], int, ShingleHashes]] = []
    for number, row in enumerate(read([*SCALARS, "question", "context"])):
        if find_omission_reason(row, options) is None and (row["question"] or "").strip():
            ranked.append((rank_row(row), number, hash_shingles(row["question"])))
    ranked.sort(key=lambda item: item[:2])
    numbers = [number for _, number, _ in ranked]
    return {numbers[i] for i in find_near_duplicates([sketch for *_, sketch in ranked], similarity)}
