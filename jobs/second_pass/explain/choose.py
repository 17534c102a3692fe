"""Choose the deciding sentences to explain: all, those of the worst responses, or a stratified sample."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from ragassay.jobs.output.scored_dataset import DataFile, open_scored, value_to_text
from ragassay.jobs.second_pass.explain import errors
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.verdict.deciding import list_deciding_sentences
from ragassay.schemas.columns import HALLUCINATED


@dataclass
class FlaggedRows:
    """The hallucinated rows of `scored/`, in file order.

    Attributes:
        keys: `row_key` of each row.
        file_numbers: Index of each row's file in `files`.
        scores: Score of each row; the lower, the worse.
        sentences: Indices of each row's deciding sentences.
        strata: Stratum of each row, as text; empty without stratification.
        files: Files of `scored/`.
    """

    keys: Ints
    file_numbers: Ints
    scores: Floats
    sentences: list[tuple[int, ...]]
    strata: list[str]
    files: tuple[DataFile, ...] = ()

    @property
    def counts(self) -> Ints:
        """Number of deciding sentences per row."""
        return np.array([len(row) for row in self.sentences], dtype=np.int64)


def read_flagged_rows(output: Folder, stratify: str | None = None) -> FlaggedRows:
    """Read the hallucinated rows.

    Args:
        output: The output folder, finalized.
        stratify: Column or partition key with the strata.

    Raises:
        OutputError: There are no verdicts.
        InputError: The column does not exist.
    """
    scored = open_scored(output).require_verdicts()
    if stratify:
        scored.require_columns([stratify], "--stratify")
    file_number = {file: number for number, file in enumerate(scored.files)}
    keys, numbers, scores = [np.array([], np.int64)], [np.array([], np.int64)], [np.array([])]
    sentences: list[tuple[int, ...]] = []
    strata: list[str] = []
    fields = ["sentences.list.element.state", "sentences.list.element.score"]
    columns = ["row_key", "score", "verdict", *fields, *([stratify] if stratify else [])]
    for rows in scored.read_batches(columns):
        flagged = rows.table.filter(pc.equal(rows.table["verdict"], HALLUCINATED))
        keys.append(flagged["row_key"].to_numpy())
        numbers.append(np.full(len(flagged), file_number[rows.file]))
        scores.append(flagged["score"].to_numpy())
        sentences += list_deciding_sentences(flagged["sentences"].combine_chunks())
        strata += map(value_to_text, flagged[stratify].to_pylist() if stratify else ())
    return FlaggedRows(np.concatenate(keys), np.concatenate(numbers), np.concatenate(scores), sentences, strata, scored.files)


def choose_rows(rows: FlaggedRows, max_sentences: int | None, stratified: bool, seed: int) -> Ints:
    """Choose the rows to explain. A larger limit chooses a superset.

    Args:
        rows: The rows to choose from.
        max_sentences: Maximum number of deciding sentences in the chosen rows; None chooses all rows.
        stratified: Choose a random sample, balanced by stratum, instead of the worst rows.
        seed: Seed of the sample.

    Returns:
        Indices of the chosen rows, ascending.

    Raises:
        InputError: The first row exceeds the limit.
    """
    if max_sentences is None:
        return np.arange(len(rows.keys))
    order = _interleave_strata(rows, seed) if stratified else np.lexsort((rows.keys, rows.scores))
    counts = rows.counts[order]
    fitting = np.searchsorted(np.cumsum(counts), max_sentences, side="right")
    if not fitting and len(counts):
        raise InputError(errors.TOO_FEW_SENTENCES, flagged=counts[0], sentences=max_sentences)
    return np.sort(np.asarray(order, dtype=np.int64)[:fitting])


def _interleave_strata(rows: FlaggedRows, seed: int) -> Ints:
    """Order rows: the first row of each stratum, then the second of each, and so on; random within a stratum."""
    hashes = _hash_keys(rows.keys, seed)
    last_rank: dict[str, int] = {}
    rank = np.zeros(len(hashes), dtype=np.int64)
    for index in np.argsort(hashes, kind="stable"):
        rank[index] = last_rank[rows.strata[index]] = last_rank.get(rows.strata[index], -1) + 1
    return np.asarray(np.lexsort((hashes, rank)))


def _hash_keys(keys: Ints, seed: int) -> Ints:
    """Compute pseudorandom numbers from keys and seed (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray((x ^ (x >> np.uint64(31))) >> np.uint64(1), dtype=np.int64)
