"""Read `explanations/`: counts over all deciding sentences, texts only for the responses that the report shows."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.output.partitions import hive_keys, hive_path
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, read_rows_by_key
from ragassay.jobs.output.sidecar_dataset import open_explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.verdict.deciding import list_deciding_sentences
from ragassay.schemas.columns import HALLUCINATED, NULL_PARTITION
from ragassay.schemas.explanation_columns import AnswerStatus, explanations_partition_key

STRATEGY_ORDER = (Strategy.CATEGORIZED, Strategy.FALLBACK, Strategy.VANILLA)
"""Strategies in order of preference; the report shows the first one that has explanations."""

COUNTED_COLUMNS = [
    "row_key", "model", *(f"explanations.list.element.{name}" for name in ("sentence", "category", "consistent", "status")),
]  # fmt: skip

PartitionKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ShownExplanation:
    """A model's explanation of a deciding sentence.

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
    """Counts of the explanations of the deciding sentences now.

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

    Sentences that do not decide under a new threshold are not counted. Memory grows with the deciding sentences of a partition.

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
            deciding = _read_deciding(scored.select_partitions(partitions[_partition_key(partition)]), where or {})
            group = next(iter(hive_keys(partition).values()), "")
            for batch in dataset.read_batches(COUNTED_COLUMNS, paths):
                _count_batch(summary, group, batch, deciding)
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


def _read_deciding(scored: ScoredDataset, where: Mapping[str, str]) -> pl.DataFrame:
    """Read `row_key` and sentence number of every deciding sentence."""
    frames = [pl.DataFrame(schema={"row_key": pl.Int64, "sentence": pl.Int32})]
    fields = ["sentences.list.element.state", "sentences.list.element.score"]
    for rows in scored.read_batches(["row_key", "verdict", *fields, *where], reports_progress=False):
        is_hallucinated = pc.fill_null(pc.equal(rows.table["verdict"], HALLUCINATED), False)
        table = rows.table.filter(pc.and_(is_hallucinated, pa.array(rows.matches(where))))
        deciding = pl.Series(list_deciding_sentences(table["sentences"].combine_chunks()), dtype=pl.List(pl.Int32))
        frames.append(pl.DataFrame(table.select(["row_key"])).with_columns(sentence=deciding).explode("sentence"))
    return pl.concat(frames)


def _count_batch(summary: ExplanationSummary, group: str, batch: pa.RecordBatch, deciding: pl.DataFrame) -> None:
    rows = (
        _to_frame(batch).explode("explanations").unnest("explanations").join(deciding, on=["row_key", "sentence"], how="semi")
    )
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
