"""Which flagged sentences are explained: all, those of the worst responses, or a sample of every kind of row."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.output.scored_dataset import DataFile, open_scored, value_to_text
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.errors import InputError


@dataclass
class FlaggedRows:
    """The rows of `scored/` with flagged sentences, in the order of the output.

    Attributes:
        keys: `row_key` of each.
        file_numbers: Number of its file in `files`.
        scores: Score of each; the lower, the worse.
        sentences: Numbers of its flagged sentences.
        strata: Value of the column that a sample is stratified by, as text; empty without one.
        files: The files of `scored/`.
    """

    keys: Ints
    file_numbers: Ints
    scores: Floats
    sentences: list[tuple[int, ...]]
    strata: list[str]
    files: tuple[DataFile, ...] = ()

    @property
    def counts(self) -> Ints:
        """Flagged sentences a row."""
        return np.array([len(row) for row in self.sentences], dtype=np.int64)


def read_flagged_rows(output: Folder, stratify: str | None = None) -> FlaggedRows:
    """Look through `scored/`.

    Args:
        output: The output folder, finalised.
        stratify: Column, or key of partitions, whose values are read too.

    Raises:
        OutputError: There are no verdicts.
        InputError: There is no such column.
    """
    scored = open_scored(output).require_verdicts()
    if stratify:
        scored.require_columns([stratify], "by which the sample would be stratified")
    number_of = {file: number for number, file in enumerate(scored.files)}
    keys, numbers, scores = [np.array([], np.int64)], [np.array([], np.int64)], [np.array([])]
    sentences: list[tuple[int, ...]] = []
    strata: list[str] = []
    columns = ["row_key", "score", "flagged_sentences", "sentences.list.element.flagged", *([stratify] if stratify else [])]
    for rows in scored.read_batches(columns):
        flagged = rows.table.filter(pc.greater(rows.table["flagged_sentences"], 0))
        keys.append(flagged["row_key"].to_numpy())
        numbers.append(np.full(len(flagged), number_of[rows.file]))
        scores.append(flagged["score"].to_numpy())
        sentences += _numbers(flagged["sentences"].combine_chunks())
        strata += map(value_to_text, flagged[stratify].to_pylist() if stratify else ())
    return FlaggedRows(np.concatenate(keys), np.concatenate(numbers), np.concatenate(scores), sentences, strata, scored.files)


def _numbers(sentences: pa.ListArray) -> list[tuple[int, ...]]:
    """Numbers of the flagged sentences of each row."""
    flags = pc.fill_null(sentences.flatten().field("flagged"), False).to_numpy(zero_copy_only=False)
    ends = np.cumsum(pc.list_value_length(sentences).to_numpy())
    return [tuple(np.flatnonzero(row).tolist()) for row in np.split(flags, ends[:-1])] if len(ends) else []


def choose_rows(rows: FlaggedRows, sentences: int | None, stratified: bool, seed: int) -> Ints:
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
        raise InputError(errors.TOO_FEW_SENTENCES, flagged=counts[0], sentences=sentences)
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
