"""What `explanations/` says of flagged sentences: counted in one pass over its small columns; texts of the shown rows only."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ragassay.jobs.output.partitions import hive_keys, hive_path
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, read_rows
from ragassay.jobs.output.sidecar import explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanations import AnswerStatus, explanations_partition_key

MOST_TELLING = (Strategy.CATEGORIZED, Strategy.FALLBACK, Strategy.VANILLA)
"""The first of these that has explained anything is shown."""

COUNTED = [
    "row_key", "model", *(f"explanations.list.element.{name}" for name in ("sentence", "category", "consistent", "status")),
]  # fmt: skip
NULL = "__HIVE_DEFAULT_PARTITION__"
"""Value of a hive key that a row has not."""

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Explanation:
    """Why a sentence is flagged, by a model that can be read.

    Attributes:
        category: The kind of hallucination; null but under the strategy `categorized`.
        reason: Why, in words.
        quote: What it quotes of a passage; null where nothing.
        passage: Number of that passage, from 0.
        start: Where the quote begins in it, in characters.
        end: Where it ends.
        disagrees: Whether it says that the sentence is no hallucination.
    """

    category: str | None
    reason: str
    quote: str | None = None
    passage: int = 0
    start: int = 0
    end: int = 0
    disagrees: bool = False


@dataclass
class Explanations:
    """Explanations of the sentences that are flagged now.

    Attributes:
        strategy: How the model could disagree.
        all_shown: Whether those that disagree with the flag are shown too.
        models: Who explained.
        answered: Explanations that can be read.
        disagreeing: Those of them that disagree with the flag.
        unanswered: The others, by outcome.
        nights: Value of the first hive key -> explanations that agree, by category; of nights with any that can be read.
    """

    strategy: str
    all_shown: bool = False
    models: set[str] = field(default_factory=set)
    answered: int = 0
    disagreeing: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    nights: dict[str, Counter[str]] = field(default_factory=dict)


def count_explanations(output: Folder, scored: ScoredDataset, show_all: bool = False) -> Explanations | None:
    """Count the explanations of the most telling strategy; None where there are none.

    What was explained before a new threshold took its flag away is not counted. Memory grows with the flagged sentences of
    one partition.

    Args:
        output: The output folder.
        scored: Its verdicts.
        show_all: Whether the page shows those that disagree.
    """
    places: dict[Key, list[str]] = {}
    for place in scored.partitions:
        places.setdefault(_key(place), []).append(hive_path(place))
    for strategy in MOST_TELLING:
        found = Explanations(strategy, show_all)
        dataset = explanations(output, strategy)
        for place, paths in dataset.partitions().items():
            flagged = _flagged(scored.only(places.get(_key(place), [])))
            night = next(iter(hive_keys(place).values()), "")
            for batch in dataset.batches(COUNTED, paths):
                _count(found, night, batch, flagged)
        if found.answered or found.unanswered:
            return found
    return None


def explanations_of(
    output: Folder, explained: Explanations, keys: Iterable[tuple[str, int]]
) -> dict[int, dict[int, Explanation]]:
    """The explanations to show of some rows: `row_key` -> number of the sentence -> explanation.

    Args:
        output: The output folder.
        explained: Says of which strategy, and whether those that disagree are shown.
        keys: (partition in `scored/`, `row_key`) of each row.
    """
    wanted: dict[Key, set[int]] = {}
    for place, row_key in keys:
        wanted.setdefault(_key(place), set()).add(row_key)
    found: dict[int, dict[int, Explanation]] = {}
    for place, paths in explanations(output, explained.strategy).partitions().items():
        files = [DataFile(place, path) for path in paths]
        for row in _rows(output, files, wanted.get(_key(place), set())):
            for entry in row["explanations"]:
                disagrees = entry["consistent"] is False
                if entry["status"] == AnswerStatus.OK and (explained.all_shown or not disagrees):
                    found.setdefault(row["row_key"], {})[entry["sentence"]] = _explanation(entry, disagrees)
    return found


def _key(place: str) -> Key:
    """A partition as both datasets have it: explanations have every key, a null for one that the row's partition lacks."""
    return tuple((explanations_partition_key(key), value) for key, value in hive_keys(place).items() if value != NULL)


def _flagged(scored: ScoredDataset) -> pl.DataFrame:
    """`row_key` and number of every flagged sentence."""
    found = [pl.DataFrame(schema={"row_key": pl.Int64, "sentence": pl.Int32})]
    for rows in scored.batches(["row_key", "sentences.list.element.flagged"], is_counted=False):
        frame = pl.DataFrame(rows.table).with_columns(sentence=pl.int_ranges(pl.col("sentences").list.len(), dtype=pl.Int32))
        flags = frame.explode("sentences", "sentence").filter(pl.col("sentences").struct.field("flagged"))
        found.append(flags.select("row_key", "sentence"))
    return pl.concat(found)


def _count(found: Explanations, night: str, batch: pa.RecordBatch, flagged: pl.DataFrame) -> None:
    rows = _frame(batch).explode("explanations").unnest("explanations").join(flagged, on=["row_key", "sentence"], how="semi")
    ok = pl.col("status") == AnswerStatus.OK.value
    answers = rows.filter(ok)
    agreeing = answers.filter(pl.col("consistent").fill_null(True))
    found.models |= set(rows["model"].unique())
    found.answered += len(answers)
    found.disagreeing += len(answers) - len(agreeing)
    found.unanswered.update(rows.filter(~ok)["status"].to_list())
    if len(answers):
        found.nights.setdefault(night, Counter()).update(agreeing["category"].drop_nulls().to_list())


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    return pl.DataFrame(pa.Table.from_batches([batch]))


def _rows(output: Folder, files: Iterable[DataFile], keys: Collection[int]) -> Iterator[dict[str, Any]]:
    """Rows of `explanations/` with these keys; texts are read of these rows only."""
    wanted = np.array(sorted(keys), dtype=np.int64)
    for file in files if len(wanted) else ():
        for table in read_rows(output.fs, file, wanted, ["row_key", "explanations"]):
            yield from table.to_pylist()


def _explanation(entry: Mapping[str, Any], disagrees: bool) -> Explanation:
    category, reason, at = entry["category"], entry["reason"] or "", entry["evidence"]
    if at is None:
        return Explanation(category, reason, disagrees=disagrees)
    return Explanation(category, reason, at["text"], at["passage"], at["start"], at["end"], disagrees)
