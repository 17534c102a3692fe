"""Which flagged sentences are explained: all, those of the worst responses, or a sample of every kind of row."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from ragassay.jobs.output.partitions import hive_keys, partitions, read_group
from ragassay.jobs.output.scored_dataset import as_text
from ragassay.jobs.storage import Folder
from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.errors import InputError, OutputError


@dataclass
class FlaggedRows:
    """The rows of `scored/` with flagged sentences, in the order of the output.

    Attributes:
        keys: `row_key` of each.
        files: Number of its file in `paths`.
        scores: Score of each; the lower, the worse.
        sentences: Numbers of its flagged sentences.
        strata: Value of the column that a sample is stratified by, as text; empty without one.
        paths: (partition, path on the file system) of each file.
    """

    keys: Ints
    files: Ints
    scores: Floats
    sentences: list[tuple[int, ...]]
    strata: list[str]
    paths: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Ints:
        """Flagged sentences a row."""
        return np.array([len(row) for row in self.sentences], dtype=np.int64)


def flagged_rows(output: Folder, stratify: str | None = None) -> FlaggedRows:
    """Look through `scored/`.

    Args:
        output: The output folder, finalised.
        stratify: Column, or key of partitions, whose values are read too.

    Raises:
        OutputError: There are no verdicts, or they were written by an earlier version of this program.
        InputError: There is no such column.
    """
    files = partitions(output, "scored")
    if not files:
        raise OutputError(f"output {output.uri} has no verdicts yet: run `ragassay finalize {output.uri}` first")
    found = FlaggedRows(np.array([], np.int64), np.array([], np.int64), np.array([]), [], [])
    keys, numbers, scores = [], [], []
    met = stratify is None
    for place, paths in files.items():
        for path in paths:
            found.paths.append((place, path))
            for table in _flagged_tables(output, place, path, stratify):
                keys.append(table["row_key"].to_numpy())
                numbers.append(np.full(len(table), len(found.paths) - 1))
                scores.append(table["score"].to_numpy())
                found.sentences += _numbers(table["sentences"].combine_chunks())
                if stratify in table.column_names:
                    met = True
                    found.strata += map(as_text, table[stratify].to_pylist())
                elif stratify:
                    found.strata += [as_text(None)] * len(table)
    if not met:
        raise InputError(f"output {output.uri} has no column {stratify!r}, by which the sample would be stratified")
    found.keys, found.files = np.concatenate([found.keys, *keys]), np.concatenate([found.files, *numbers])
    found.scores = np.concatenate([found.scores, *scores])
    return found


def _flagged_tables(output: Folder, place: str, path: str, stratify: str | None) -> Iterator[pa.Table]:
    """The rows with flagged sentences, a row group at a time."""
    with pq.ParquetFile(path, filesystem=output.fs) as parquet:
        names = set(parquet.schema_arrow.names) | set(hive_keys(place))
        if "row_key" not in names:
            raise OutputError(
                f"the verdicts of {output.uri} are of an earlier version: run `ragassay finalize {output.uri}` with the job "
                "file that made them first"
            )
        columns = ["row_key", "score", "flagged_sentences", "sentences", *([stratify] if stratify else [])]
        for group in range(parquet.num_row_groups):
            table = read_group(parquet, group, columns, place)
            yield table.filter(pc.greater(table["flagged_sentences"], 0))


def _numbers(sentences: pa.ListArray) -> list[tuple[int, ...]]:
    """Numbers of the flagged sentences of each row."""
    flags = pc.fill_null(sentences.flatten().field("flagged"), False).to_numpy(zero_copy_only=False)
    ends = np.cumsum(pc.list_value_length(sentences).to_numpy())
    return [tuple(np.flatnonzero(row).tolist()) for row in np.split(flags, ends[:-1])] if len(ends) else []


def choose(rows: FlaggedRows, sentences: int | None, stratified: bool, seed: int) -> Ints:
    """The rows to explain, whole: all; or the first that hold so many sentences at most. More sentences take the same and more.

    Args:
        rows: Where to choose from.
        sentences: Flagged sentences at most; None takes all.
        stratified: Take a random sample with as much of each stratum, not the worst rows.
        seed: Of the sample.

    Returns:
        Places in `rows`, in their order.

    Raises:
        InputError: The first row has more flagged sentences.
    """
    if sentences is None:
        return np.arange(len(rows.keys))
    order = _even_order(rows, seed) if stratified else np.lexsort((rows.keys, rows.scores))
    counts = rows.counts[order]
    fit = np.searchsorted(np.cumsum(counts), sentences, side="right")
    if not fit and len(counts):
        raise InputError(f"the first response alone has {counts[0]} flagged sentences, more than {sentences}: give more")
    return np.sort(np.asarray(order, dtype=np.int64)[:fit])


def _even_order(rows: FlaggedRows, seed: int) -> Ints:
    """Every stratum's first row, then every stratum's second, and so on; a stratum's rows in a random order."""
    chance = _mixed(rows.keys, seed)
    met: dict[str, int] = {}
    rank = np.zeros(len(chance), dtype=np.int64)
    for place in np.argsort(chance, kind="stable"):
        rank[place] = met[rows.strata[place]] = met.get(rows.strata[place], -1) + 1
    return np.asarray(np.lexsort((chance, rank)))


def _mixed(keys: Ints, seed: int) -> Ints:
    """A number a key that looks random, and depends on nothing but key and seed (the mixer of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((x ^ (x >> np.uint64(31))) >> np.uint64(1), dtype=np.int64)
