"""Draw scored rows for review, each with its inclusion probability, in a few passes over scalar columns of `scored/`."""

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.output.scored_dataset import Position, Rows, ScoredDataset, describe_conditions, open_scored
from ragassay.jobs.report import errors
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.errors import ConfigError, InputError
from ragassay.pipeline.verdict.moments import compute_moments, estimate_quantile, merge_moments
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, Status
from ragassay.schemas.stats import Moments

READ_COLUMNS = ("row_id", "status", "score", "threshold", "verdict")
NEAR_SHARE = 1 / 3
"""Share of the responses of a verdict whose scores count as near the threshold."""

NO_STRATUM = ""
"""Stratum of a simple random sample, which has no name."""

STRATUM_NAMES = {HALLUCINATED: "flagged", SUPPORTED: SUPPORTED}


@dataclass(frozen=True)
class SampledRow:
    """A sampled row.

    Attributes:
        position: Its position in the output.
        stratum: Stratum that it was drawn from; empty in a simple sample.
        probability: Its inclusion probability, above 0, at most 1.
    """

    position: Position
    stratum: str
    probability: float


@dataclass(frozen=True)
class ReviewSample:
    """Rows to review.

    Attributes:
        rows: The rows in random order, so that the first ones are a sample too.
        strata: Stratum -> (sampled rows, all rows).
        ambiguous: Scored rows that can't be sampled, because another row of their partition has the same id.
    """

    rows: list[SampledRow]
    strata: dict[str, tuple[int, int]]
    ambiguous: int


_Candidate = tuple[bytes, Position]
"""Digest and position of a row; rows with the lowest digests are drawn."""


def draw_sample(
    output: Folder, size: int, *, seed: int = 0, stratified: bool = False, where: Mapping[str, str] | None = None
) -> ReviewSample:
    """Draw scored rows by a hash of seed, partition and id: the result depends on output and seed, not on files.

    Of N rows in a stratum, the n with the lowest hashes are drawn, each with probability n / N. Rows that share their id
    within a partition can't be labeled; they are neither drawn nor counted. Memory: see `ScoredDataset.find_repeated_ids`.

    Args:
        output: A finalized output folder.
        size: Rows to draw; all rows if there are no more.
        seed: Seed of the hash.
        stratified: Whether to draw equally from four strata: flagged and supported rows, near the threshold and far from it.
            The sample then contains more flagged and doubtful rows.
        where: Column -> value, as text, that a row must have.

    Raises:
        ConfigError: The sample is too small for a row per stratum.
        InputError: A column is missing, or no row can be drawn.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    conditions = dict(where or {})
    scored.require_columns(conditions)
    repeated_ids = scored.find_repeated_ids()
    near_limits = _find_near_limits(scored, conditions, repeated_ids) if stratified else None
    counts: Counter[str] = Counter()
    ambiguous = 0
    lowest: dict[str, list[_Candidate]] = {}
    for batch, table, ambiguous_rows in _read_scored(scored, conditions, repeated_ids):
        ambiguous += ambiguous_rows
        strata = _assign_strata(table, near_limits) if near_limits is not None else [NO_STRATUM] * len(table)
        counts.update(strata)
        _keep_lowest(lowest, strata, _make_candidates(batch, table, seed), size)
    if not counts:
        uniqueness = " whose id is unique in its partition, as labels need" if ambiguous else ""
        raise InputError(errors.REVIEW_NO_ROW, output=output.uri, which=uniqueness, where=describe_conditions(conditions))
    if size < len(counts):
        raise ConfigError(errors.SAMPLE_TOO_SMALL, strata=len(counts), minimum=len(counts))
    sizes = allocate_rows(size, counts)
    sampled = [
        (digest, SampledRow(position, stratum, sizes[stratum] / counts[stratum]))
        for stratum, candidates in lowest.items()
        for digest, position in candidates[: sizes[stratum]]
    ]
    # Sort by the reversed digests: rows are drawn by the beginnings, and few rows of a large stratum would all come first.
    sampled.sort(key=lambda pair: pair[0][::-1])
    return ReviewSample([row for _, row in sampled], {name: (sizes[name], counts[name]) for name in sorted(counts)}, ambiguous)


def count_passes(stratified: bool) -> int:
    """Return how often `draw_sample` reads every row."""
    return 3 if stratified else 2


def allocate_rows(size: int, counts: Mapping[str, int]) -> dict[str, int]:
    """Allocate the rows to draw to strata, equally; the shortfall of a small stratum is drawn from the others.

    Args:
        size: Rows to draw in all, at least one per stratum.
        counts: Stratum -> its rows, at least 1.
    """
    sizes: dict[str, int] = {}
    remaining = size
    for i, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (item[1], item[0]))):
        sizes[name] = min(count, remaining // (len(counts) - i))
        remaining -= sizes[name]
    return sizes


def hash_row(seed: int, partition: str, row_id: str) -> bytes:
    """Return the sixteen bytes by which a row is drawn."""
    return blake2b(json.dumps([seed, partition, row_id]).encode(), digest_size=16).digest()


def _read_scored(
    scored: ScoredDataset, where: Mapping[str, str], repeated_ids: Mapping[str, pa.Array]
) -> Iterator[tuple[Rows, pa.Table, int]]:
    """Read the batches: each with its selected scored rows (their number in the batch as `row`), and the number of rows
    that share their id.
    """
    for batch in scored.read_batches([*READ_COLUMNS, *where]):
        table = batch.table
        is_scored = pc.and_(pc.equal(table["status"], Status.OK.value), pc.is_valid(table["verdict"])).to_numpy()
        is_selected = is_scored & batch.matches(where)
        is_unique = ~pc.is_in(table["row_id"], repeated_ids[batch.file.partition]).to_numpy()
        rows = np.flatnonzero(is_selected & is_unique)
        yield (
            batch,
            table.select(READ_COLUMNS).take(rows).append_column("row", pa.array(rows)),
            int((is_selected & ~is_unique).sum()),
        )


def _find_near_limits(
    scored: ScoredDataset, where: Mapping[str, str], repeated_ids: Mapping[str, pa.Array]
) -> dict[str, float]:
    """Find the distance from the threshold up to which a response of a verdict counts as near."""
    moments_by_verdict: dict[str, Moments] = {}
    for _, table, _ in _read_scored(scored, where, repeated_ids):
        distances = _threshold_distances(table)
        for verdict in STRATUM_NAMES:
            distances_of_verdict = distances[_has_verdict(table, verdict) & np.isfinite(distances)]
            moments_by_verdict[verdict] = merge_moments(
                [moments_by_verdict.get(verdict, Moments()), compute_moments(distances_of_verdict)]
            )
    return {verdict: estimate_quantile(moments, NEAR_SHARE) for verdict, moments in moments_by_verdict.items() if moments.count}


def _assign_strata(table: pa.Table, near_limits: Mapping[str, float]) -> list[str]:
    """Return each row's stratum; a row without a finite distance is far from the threshold."""
    distances = _threshold_distances(table)
    return [
        f"{STRATUM_NAMES[verdict]}, {'near' if distance <= near_limits.get(verdict, -1.0) else 'far from'} the threshold"
        for verdict, distance in zip(table["verdict"].to_pylist(), distances, strict=True)
    ]


def _threshold_distances(table: pa.Table) -> Floats:
    distances: Floats = np.abs(table["score"].to_numpy() - table["threshold"].to_numpy())
    return distances


def _has_verdict(table: pa.Table, verdict: str) -> Bools:
    matches: Bools = pc.equal(table["verdict"], verdict).to_numpy()
    return matches


def _make_candidates(batch: Rows, table: pa.Table, seed: int) -> list[_Candidate]:
    partition = batch.file.partition_name
    rows: Any = zip(table["row_id"].to_pylist(), table["row"].to_pylist(), strict=True)
    return [(hash_row(seed, partition, row_id), batch.position(row)) for row_id, row in rows]


def _keep_lowest(
    lowest: dict[str, list[_Candidate]], strata: Sequence[str], candidates: Sequence[_Candidate], size: int
) -> None:
    """Keep the lowest candidates of each stratum, in order."""
    added: dict[str, list[_Candidate]] = {}
    for stratum, candidate in zip(strata, candidates, strict=True):
        kept = lowest.get(stratum, [])
        if len(kept) < size or candidate < kept[-1]:
            added.setdefault(stratum, []).append(candidate)
    for stratum, new_candidates in added.items():
        lowest[stratum] = heapq.nsmallest(size, [*lowest.get(stratum, []), *new_candidates])
