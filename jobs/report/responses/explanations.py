"""Read `explanations/`: counts over all flagged sentences, texts only for the responses that the report shows."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ragassay.jobs.output.partitions import hive_keys, hive_path
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, read_rows_by_key
from ragassay.jobs.output.sidecar_dataset import open_explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.columns import NULL_PARTITION, SentenceState
from ragassay.schemas.explanation_columns import AnswerStatus, explanations_partition_key

STRATEGY_ORDER = (Strategy.CATEGORIZED, Strategy.FALLBACK, Strategy.VANILLA)
"""Strategies in order of preference; the report shows the first one that has explanations."""

COUNTED_COLUMNS = [
    "row_key", "model", *(f"explanations.list.element.{name}" for name in ("sentence", "category", "consistent", "status")),
]  # fmt: skip

PartitionKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ShownExplanation:
    """A model's explanation of a flagged sentence.

    Attributes:
        category: Kind of hallucination; null except under the strategy `categorized`.
        reason: The reason, in words.
        quote: Quote from a passage; null if there is none.
        passage: Number of that passage, from 0.
        start: First character of the quote in the passage.
        end: End of the quote in the passage.
        has_disagreement: Whether the model finds that the sentence is no hallucination.
    """

    category: str | None
    reason: str
    quote: str | None = None
    passage: int = 0
    start: int = 0
    end: int = 0
    has_disagreement: bool = False


@dataclass
class ExplanationSummary:
    """Counts of the explanations of the sentences that are flagged now.

    Attributes:
        strategy: The strategy.
        models: The models that explained.
        readable: Explanations that can be read.
        disagreeing: Readable explanations that disagree with the flag.
        unreadable: The other explanations, by outcome.
        categories: Value of the first hive key -> explanations that agree, by category; only values with a readable one.
    """

    strategy: str
    models: set[str] = field(default_factory=set)
    readable: int = 0
    disagreeing: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    categories: dict[str, Counter[str]] = field(default_factory=dict)


def count_explanations(
    output: Folder, scored: ScoredDataset, where: Mapping[str, str] | None = None
) -> ExplanationSummary | None:
    """Count the explanations of the preferred strategy; None if there are none.

    Sentences that a new threshold no longer flags are not counted. Memory grows with the flagged sentences of one partition.

    Args:
        output: The output folder.
        scored: Its verdicts, or some partitions of them.
        where: Column -> value, as text, that a row must have.
    """
    partitions: dict[PartitionKey, list[str]] = {}
    for partition in scored.partitions:
        partitions.setdefault(_partition_key(partition), []).append(hive_path(partition))
    for strategy in STRATEGY_ORDER:
        summary = ExplanationSummary(strategy)
        dataset = open_explanations(output, strategy)
        for partition, paths in dataset.list_partition_files().items():
            if _partition_key(partition) not in partitions:
                continue
            flagged = _read_flagged(scored.select_partitions(partitions[_partition_key(partition)]), where or {})
            group = next(iter(hive_keys(partition).values()), "")
            for batch in dataset.read_batches(COUNTED_COLUMNS, paths):
                _count_batch(summary, group, batch, flagged)
        if summary.readable or summary.unreadable:
            return summary
    return None


def read_explanations(
    output: Folder, summary: ExplanationSummary, row_keys: Iterable[tuple[str, int]]
) -> dict[int, dict[int, ShownExplanation]]:
    """Read the explanations to show of some rows: `row_key` -> number of the sentence -> explanation.

    Args:
        output: The output folder.
        summary: Their counts, which name the strategy.
        row_keys: (partition in `scored/`, `row_key`) of each row.
    """
    keys_by_partition: dict[PartitionKey, set[int]] = {}
    for partition, row_key in row_keys:
        keys_by_partition.setdefault(_partition_key(partition), set()).add(row_key)
    explanations_by_row: dict[int, dict[int, ShownExplanation]] = {}
    for partition, paths in open_explanations(output, summary.strategy).list_partition_files().items():
        files = [DataFile(partition, path) for path in paths]
        for row in _read_rows(output, files, keys_by_partition.get(_partition_key(partition), set())):
            for entry in row["explanations"]:
                if entry["status"] == AnswerStatus.OK:
                    explanations_by_row.setdefault(row["row_key"], {})[entry["sentence"]] = _make_explanation(entry)
    return explanations_by_row


def _partition_key(partition: str) -> PartitionKey:
    """Return a partition in a form that both datasets share: explanations have every key, with a null if the row's
    partition lacks it.
    """
    return tuple(
        (explanations_partition_key(key), value) for key, value in hive_keys(partition).items() if value != NULL_PARTITION
    )


def _read_flagged(scored: ScoredDataset, where: Mapping[str, str]) -> pl.DataFrame:
    """Read `row_key` and sentence number of every flagged sentence."""
    frames = [pl.DataFrame(schema={"row_key": pl.Int64, "sentence": pl.Int32})]
    for rows in scored.read_batches(["row_key", "sentences.list.element.state", *where], reports_progress=False):
        table = rows.table.filter(pa.array(rows.matches(where))).select(["row_key", "sentences"])
        frame = pl.DataFrame(table).with_columns(sentence=pl.int_ranges(pl.col("sentences").list.len(), dtype=pl.Int32))
        is_flagged = pl.col("sentences").struct.field("state") == SentenceState.FLAGGED
        flags = frame.explode("sentences", "sentence").filter(is_flagged)
        frames.append(flags.select("row_key", "sentence"))
    return pl.concat(frames)


def _count_batch(summary: ExplanationSummary, group: str, batch: pa.RecordBatch, flagged: pl.DataFrame) -> None:
    rows = _to_frame(batch).explode("explanations").unnest("explanations").join(flagged, on=["row_key", "sentence"], how="semi")
    is_readable = pl.col("status") == AnswerStatus.OK.value
    readable = rows.filter(is_readable)
    agreeing = readable.filter(pl.col("consistent").fill_null(True))
    summary.models |= set(rows["model"].unique())
    summary.readable += len(readable)
    summary.disagreeing += len(readable) - len(agreeing)
    summary.unreadable.update(rows.filter(~is_readable)["status"].to_list())
    if len(readable):
        summary.categories.setdefault(group, Counter()).update(agreeing["category"].drop_nulls().to_list())


def _to_frame(batch: pa.RecordBatch) -> pl.DataFrame:
    return pl.DataFrame(pa.Table.from_batches([batch]))


def _read_rows(output: Folder, files: Iterable[DataFile], keys: Collection[int]) -> Iterator[dict[str, Any]]:
    """Read the rows of `explanations/` with these keys, texts included."""
    row_keys = np.array(sorted(keys), dtype=np.int64)
    for file in files if len(row_keys) else ():
        for table in read_rows_by_key(output.fs, file, row_keys, ["row_key", "explanations"]):
            yield from table.to_pylist()


def _make_explanation(entry: Mapping[str, Any]) -> ShownExplanation:
    category, reason, evidence = entry["category"], entry["reason"] or "", entry["evidence"]
    disagrees = entry["consistent"] is False
    if evidence is None:
        return ShownExplanation(category, reason, has_disagreement=disagrees)
    return ShownExplanation(
        category, reason, evidence["text"], evidence["passage"], evidence["start"], evidence["end"], disagrees
    )
