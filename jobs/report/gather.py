"""What the page shows: from `scored/` in one pass over its scores, and a second over the worst rows' texts and explanations."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.evaluation import errors
from ragassay.jobs.output.partitions import natural
from ragassay.jobs.output.scored_dataset import Position, Rows, open_scored
from ragassay.jobs.report.explained import Explanations, count_explanations
from ragassay.jobs.report.responses import Response, responses
from ragassay.jobs.report.scales import Scales
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED, Status
from ragassay.schemas.stats import Moments

COLUMNS = ("row_id", "status", "error", "score", "threshold", "verdict", "decided_by", "sentences.list.element.score")
WORST = 50
EXAMPLES = 3
"""Failed rows shown a reason."""


@dataclass
class Share:
    """Responses of one day or one value of a column.

    Attributes:
        value: The day, or the value.
        scored: Rows with a verdict.
        flagged: Those of them that are flagged.
        score_sum: Sum of the scores.
        unscored: The other rows, by status.
    """

    value: str
    scored: int = 0
    flagged: int = 0
    score_sum: float = 0.0
    unscored: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.scored + self.unscored.total()

    @property
    def mean_score(self) -> float | None:
        """Mean score of a response; null of none."""
        return self.score_sum / self.scored if self.scored else None

    @property
    def flagged_share(self) -> float:
        """Share of the scored responses that are flagged; 0 of none."""
        return self.flagged / self.scored if self.scored else 0.0


@dataclass
class Gathered:
    """What stands in `scored/` and `explanations/`.

    Attributes:
        rows: Rows by status.
        sentences: Sentences of the scored rows.
        flagged: Flagged responses.
        judged: Judge of a cascade -> responses that it decided.
        scores: Moments and sketch of the response scores.
        thresholds: The different taus.
        days: Shares by the first hive key, ascending; empty without partitions.
        day_column: That key's name.
        slices: Column -> its values' shares, the largest first.
        failed: Status -> some of its rows: (row id, partition, error).
        worst: The responses with the lowest scores, the lowest first.
        explained: What a model says of flagged sentences; null where none are explained.
    """

    rows: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    flagged: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    scores: Moments = field(default_factory=Moments)
    thresholds: set[float] = field(default_factory=set)
    days: list[Share] = field(default_factory=list)
    day_column: str = ""
    slices: dict[str, list[Share]] = field(default_factory=dict)
    failed: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    worst: list[Response] = field(default_factory=list)
    explained: Explanations | None = None


def gather(
    output: Folder,
    slices: Sequence[str] = (),
    label: str | None = None,
    all_explanations: bool = False,
    scales: Scales | None = None,
    *,
    texts: bool = True,
) -> Gathered:
    """Gather what the page shows; memory does not grow with the number of rows, but see `count_explanations`.

    Args:
        output: A finalised output folder.
        slices: Columns whose values are counted apart; hive keys among them. A point in time counts by its day.
        label: Column to show beside the worst responses.
        all_explanations: Show also the explanations that disagree with the flag.
        scales: By which the members' values are read; None shows them as they are.
        texts: Whether the output holds texts; without them no response is shown.

    Raises:
        InputError: No partition has such a column.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    extra = [*slices, *([label] if label else [])]
    scored.require_columns(extra)
    found = Gathered(slices={name: [] for name in slices})
    shares: dict[str, dict[str, Share]] = {name: {} for name in ("", *slices)}
    worst: list[tuple[float, float, Position]] = []
    for rows in scored.batches([*COLUMNS, *extra]):
        keys = rows.file.keys
        found.day_column = found.day_column or next(iter(keys), "")
        _count(found, rows.table, rows.file.partition_name)
        _add_shares(shares[""], pa.array([next(iter(keys.values()), "")] * len(rows)), rows.table)
        for name in slices:
            _add_shares(shares[name], _values(rows.table, name), rows.table)
        worst = heapq.nlargest(WORST, [*worst, *_worst(rows)])
    found.days = sorted(shares[""].values(), key=lambda share: natural(share.value)) if found.day_column else []
    found.slices = {name: sorted(shares[name].values(), key=lambda s: (-s.scored, s.value)) for name in slices}
    found.explained = count_explanations(output, scored, all_explanations)
    positions = [position for *_, position in worst]
    found.worst = responses(output, positions, label, found.explained, scales or Scales()) if texts else []
    return found


def _count(found: Gathered, table: pa.Table, partition: str) -> None:
    found.rows.update(table["status"].to_pylist())
    found.flagged += pc.sum(pc.equal(table["verdict"], HALLUCINATED)).as_py() or 0
    found.judged.update(filter(None, table["decided_by"].to_pylist()))
    del found.judged[ENSEMBLE]
    scored = table.filter(pc.is_valid(table["score"]))
    found.sentences += pc.sum(pc.list_value_length(scored["sentences"])).as_py() or 0
    found.scores = merge([found.scores, moments_of(scored["score"].to_numpy())])
    found.thresholds |= set(pc.unique(scored["threshold"]).to_pylist())
    failed = table.filter(pc.not_equal(table["status"], Status.OK.value)).select(["status", "row_id", "error"])
    for status in pc.unique(failed["status"]).to_pylist():
        examples = found.failed.setdefault(status, [])
        if len(examples) < EXAMPLES:
            rows = failed.filter(pc.equal(failed["status"], status)).slice(0, EXAMPLES - len(examples)).to_pylist()
            examples.extend((row["row_id"], partition, row["error"] or "") for row in rows)


def _values(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column's values as text; a point in time as its day."""
    column = table[name]
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError(errors.NESTED_SLICE, column=name, type=column.type)
    return pc.strftime(column, format="%Y-%m-%d") if pa.types.is_timestamp(column.type) else column.cast(pa.string())


def _add_shares(shares: dict[str, Share], values: pa.Array | pa.ChunkedArray, table: pa.Table) -> None:
    frame = pl.DataFrame(
        {
            "value": pl.Series(values.to_pylist(), dtype=pl.String),
            "scored": pc.is_valid(table["verdict"]).to_numpy(),
            "flagged": pc.fill_null(pc.equal(table["verdict"], HALLUCINATED), False).to_numpy(),
            "score": pc.fill_null(table["score"], 0.0).to_numpy(),
            "status": pl.Series(table["status"].to_pylist(), dtype=pl.String),
        }
    ).with_columns(pl.col("value").fill_null("(none)"))
    for value, scored, flagged, score in frame.group_by("value").agg(pl.col("scored", "flagged", "score").sum()).iter_rows():
        share = shares.setdefault(value, Share(value))
        share.scored += scored
        share.flagged += flagged
        share.score_sum += score
    for value, status, rows in frame.filter(~pl.col("scored")).group_by("value", "status").len().iter_rows():
        shares[value].unscored[status] += rows


def _worst(part: Rows) -> list[tuple[float, float, Position]]:
    """The rows with the lowest scores; among equal ones (clip makes many) those with the lowest sentence."""
    scores = part.table["score"].to_numpy()
    rows = np.flatnonzero(~np.isnan(scores))
    if not len(rows):
        return []
    sentences = pc.take(part.table["sentences"], pa.array(rows)).combine_chunks()
    starts = np.cumsum([0, *pc.list_value_length(sentences).to_pylist()])[:-1]
    lowest = np.fmin.reduceat(sentences.flatten().field("score").to_numpy(zero_copy_only=False), starts)
    order = np.lexsort((lowest, scores[rows]))[:WORST]
    return [(-float(scores[rows[i]]), -float(lowest[i]), part.position(int(rows[i]))) for i in order]
