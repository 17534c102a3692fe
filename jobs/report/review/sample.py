"""Draw scored rows for review, each with the probability that it was drawn: in a few passes over scalars of `scored/`."""

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

from ragassay.jobs.evaluation import errors
from ragassay.jobs.output.scored_dataset import Position, Rows, ScoredDataset, open_scored
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.errors import ConfigError, InputError
from ragassay.pipeline.verdict.moments import merge, moments_of, quantile
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED, Status
from ragassay.schemas.stats import Moments

READ = ("row_id", "status", "score", "threshold", "verdict")
NEAR = 1 / 3
"""Share of the responses of a verdict whose scores count as near the threshold."""

ALL = ""
"""The one stratum of a simple random sample, which needs no name."""

VERDICTS = {HALLUCINATED: "flagged", SUPPORTED: SUPPORTED}


@dataclass(frozen=True)
class Drawn:
    """A row of the sample.

    Attributes:
        position: Where it is stored.
        stratum: What it was drawn among; empty in a simple sample.
        probability: That it is drawn, above 0, at most 1.
    """

    position: Position
    stratum: str
    probability: float


@dataclass(frozen=True)
class Sample:
    """Rows to review.

    Attributes:
        rows: In the order in which they are to be shown: random, so that the first of them are a sample too.
        strata: Stratum -> (rows drawn, rows there are).
        repeated: Scored rows that are not among these, since another row of their partition has the same id.
    """

    rows: list[Drawn]
    strata: dict[str, tuple[int, int]]
    repeated: int


_Place = tuple[bytes, Position]
"""Where a row stands, behind its digest: rows of the lowest digests are drawn."""


def draw(
    output: Folder, size: int, *, seed: int = 0, stratified: bool = False, where: Mapping[str, str] | None = None
) -> Sample:
    """Draw scored rows by a hash of seed, partition and id: the same output and seed give the same rows, however filed.

    Of N rows in a stratum the n with the lowest hashes are drawn, each with the probability n / N. Rows of one id
    in a partition, which no label can tell apart, are neither drawn nor counted. Memory: see `ScoredDataset.repeated_ids`.

    Args:
        output: A finalised output folder.
        size: Rows wanted; all, if there are no more.
        seed: Another one draws other rows.
        stratified: Draw among flagged and supported rows, near the threshold and far from it, apart, as many of each: more
            of what is doubtful or flagged than a simple random sample has.
        where: Column -> the value, as text, that a row must have.

    Raises:
        ConfigError: The sample is too small for every stratum to have a row.
        InputError: There is no such column, or no such row that a label can name.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    conditions = dict(where or {})
    scored.require_columns(conditions)
    several = scored.repeated_ids()
    edges = _edges(scored, conditions, several) if stratified else None
    counts: Counter[str] = Counter()
    repeated = 0
    lowest: dict[str, list[_Place]] = {}
    for part, table, left_out in _scored(scored, conditions, several):
        repeated += left_out
        strata = _strata(table, edges) if edges is not None else [ALL] * len(table)
        counts.update(strata)
        _keep_lowest(lowest, strata, _places(part, table, seed), size)
    if not counts:
        which = " with an id of its own in its partition, which labels need" if repeated else ""
        where_said = f" where {_said(conditions)}" if conditions else ""
        raise InputError(errors.REVIEW_NO_ROW, output=output.uri, which=which, where=where_said)
    if size < len(counts):
        raise ConfigError(errors.SAMPLE_TOO_SMALL, strata=len(counts), least=len(counts))
    sizes = allocation(size, counts)
    drawn = [
        (digest, Drawn(position, stratum, sizes[stratum] / counts[stratum]))
        for stratum, places in lowest.items()
        for digest, position in places[: sizes[stratum]]
    ]
    # The end of a digest says nothing of its beginning, by which rows are drawn: few of a large stratum would all come first.
    drawn.sort(key=lambda pair: pair[0][::-1])
    return Sample([row for _, row in drawn], {name: (sizes[name], counts[name]) for name in sorted(counts)}, repeated)


def passes(stratified: bool) -> int:
    """How often `draw` reads every row."""
    return 3 if stratified else 2


def allocation(size: int, counts: Mapping[str, int]) -> dict[str, int]:
    """Rows to draw of each stratum: as many of each; what a small one has not is drawn of the others.

    Args:
        size: Rows to draw in all, at least one a stratum.
        counts: Stratum -> rows there are, at least 1.
    """
    sizes: dict[str, int] = {}
    left = size
    for i, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (item[1], item[0]))):
        sizes[name] = min(count, left // (len(counts) - i))
        left -= sizes[name]
    return sizes


def digest_of(seed: int, partition: str, row_id: str) -> bytes:
    """Sixteen bytes by which a row is drawn."""
    return blake2b(json.dumps([seed, partition, row_id]).encode(), digest_size=16).digest()


def _scored(
    scored: ScoredDataset, where: Mapping[str, str], several: Mapping[str, pa.Array]
) -> Iterator[tuple[Rows, pa.Table, int]]:
    """Rows in batches; the scored ones that are looked at, with their number in the batch as `row`; and how many are left
    out because several rows have their id."""
    for part in scored.batches([*READ, *where]):
        table = part.table
        is_scored = pc.and_(pc.equal(table["status"], Status.OK.value), pc.is_valid(table["verdict"])).to_numpy()
        keep = is_scored & part.matches(where)
        alone = ~pc.is_in(table["row_id"], several[part.file.partition]).to_numpy()
        rows = np.flatnonzero(keep & alone)
        yield part, table.select(READ).take(rows).append_column("row", pa.array(rows)), int((keep & ~alone).sum())


def _edges(scored: ScoredDataset, where: Mapping[str, str], several: Mapping[str, pa.Array]) -> dict[str, float]:
    """How far from the threshold the nearest responses of a verdict reach."""
    found: dict[str, Moments] = {}
    for _, table, _ in _scored(scored, where, several):
        distances = _distances(table)
        for verdict in VERDICTS:
            mine = distances[_is(table, verdict) & np.isfinite(distances)]
            found[verdict] = merge([found.get(verdict, Moments()), moments_of(mine)])
    return {verdict: quantile(moments, NEAR) for verdict, moments in found.items() if moments.count}


def _strata(table: pa.Table, edges: Mapping[str, float]) -> list[str]:
    """A stratum a row; one whose distance is no finite number is far from the threshold."""
    distances = _distances(table)
    return [
        f"{VERDICTS[verdict]}, {'near' if distance <= edges.get(verdict, -1.0) else 'far from'} the threshold"
        for verdict, distance in zip(table["verdict"].to_pylist(), distances, strict=True)
    ]


def _distances(table: pa.Table) -> Floats:
    distances: Floats = np.abs(table["score"].to_numpy() - table["threshold"].to_numpy())
    return distances


def _is(table: pa.Table, verdict: str) -> Bools:
    found: Bools = pc.equal(table["verdict"], verdict).to_numpy()
    return found


def _places(part: Rows, table: pa.Table, seed: int) -> list[_Place]:
    partition = part.file.partition_name
    rows: Any = zip(table["row_id"].to_pylist(), table["row"].to_pylist(), strict=True)
    return [(digest_of(seed, partition, row_id), part.position(row)) for row_id, row in rows]


def _keep_lowest(lowest: dict[str, list[_Place]], strata: Sequence[str], places: Sequence[_Place], size: int) -> None:
    """Keep the lowest places of each stratum, in order."""
    new: dict[str, list[_Place]] = {}
    for stratum, place in zip(strata, places, strict=True):
        kept = lowest.get(stratum, [])
        if len(kept) < size or place < kept[-1]:
            new.setdefault(stratum, []).append(place)
    for stratum, found in new.items():
        lowest[stratum] = heapq.nsmallest(size, [*lowest.get(stratum, []), *found])


def _said(where: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in where.items())
