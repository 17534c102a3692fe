"""Gather the report's data: one pass over the scores in `scored/`, then the texts and explanations of the worst responses."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.output.partitions import natural_key
from ragassay.jobs.output.scored_dataset import Position, Rows, open_scored
from ragassay.jobs.report import errors
from ragassay.jobs.report.explanations import ExplanationSummary, count_explanations
from ragassay.jobs.report.member_scores import MemberScales
from ragassay.jobs.report.responses import ShownResponse, read_responses
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.verdict.moments import compute_moments, merge_moments
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED, Status
from ragassay.schemas.stats import Moments

READ_COLUMNS = ("row_id", "status", "error", "score", "threshold", "verdict", "decided_by", "sentences.list.element.score")
WORST_RESPONSES = 50
EXAMPLES_PER_FAILURE = 3
"""Failed rows shown per status."""


@dataclass
class GroupCounts:
    """Counts of the rows with one value of a column.

    Attributes:
        value: The value.
        scored: Rows with a verdict.
        flagged: Flagged rows.
        score_sum: Sum of the scores.
        unscored: Rows without a verdict, by status.
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
        """Mean score of a response; None if there are none."""
        return self.score_sum / self.scored if self.scored else None

    @property
    def flagged_share(self) -> float:
        """Share of the scored responses that are flagged; 0 if there are none."""
        return self.flagged / self.scored if self.scored else 0.0


@dataclass
class ReportData:
    """Data of the report.

    Attributes:
        row_counts: Rows by status.
        sentence_count: Sentences of the scored rows.
        flagged: Flagged responses.
        judge_decisions: Judge of a cascade -> responses that it decided.
        score_moments: Moments and sketch of the response scores.
        thresholds: The distinct values of tau.
        partition_groups: Counts by the first hive key, ascending; empty without partitions.
        partition_key: Name of that key.
        slices: Column -> counts of its values, the largest first.
        failures: Status -> some of its rows: (row id, partition, error).
        worst: The responses with the lowest scores, the lowest first.
        explanations: Counts of the explanations of flagged sentences; None if there are none.
    """

    row_counts: Counter[str] = field(default_factory=Counter)
    sentence_count: int = 0
    flagged: int = 0
    judge_decisions: Counter[str] = field(default_factory=Counter)
    score_moments: Moments = field(default_factory=Moments)
    thresholds: set[float] = field(default_factory=set)
    partition_groups: list[GroupCounts] = field(default_factory=list)
    partition_key: str = ""
    slices: dict[str, list[GroupCounts]] = field(default_factory=dict)
    failures: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    worst: list[ShownResponse] = field(default_factory=list)
    explanations: ExplanationSummary | None = None


def gather_report_data(
    output: Folder,
    slices: Sequence[str] = (),
    label: str | None = None,
    all_explanations: bool = False,
    scales: MemberScales | None = None,
    *,
    texts: bool = True,
) -> ReportData:
    """Gather the report's data. Memory does not grow with the number of rows, except as in `count_explanations`.

    Args:
        output: A finalized output folder.
        slices: Columns with counts for each of their values; hive keys are allowed. A timestamp counts by its day.
        label: Column to show with the worst responses.
        all_explanations: Whether to show explanations that disagree with the flag.
        scales: Scales of the members' values; None shows raw values.
        texts: Whether the output contains texts; without them no response is shown.

    Raises:
        InputError: No partition has such a column.
        OutputError: There are no verdicts.
    """
    scored = open_scored(output).require_verdicts()
    extra_columns = [*slices, *([label] if label else [])]
    scored.require_columns(extra_columns)
    data = ReportData(slices={name: [] for name in slices})
    groups: dict[str, dict[str, GroupCounts]] = {name: {} for name in ("", *slices)}
    worst: list[tuple[float, float, Position]] = []
    for rows in scored.read_batches([*READ_COLUMNS, *extra_columns]):
        keys = rows.file.keys
        data.partition_key = data.partition_key or next(iter(keys), "")
        _count_rows(data, rows.table, rows.file.partition_name)
        _add_group_counts(groups[""], pa.array([next(iter(keys.values()), "")] * len(rows)), rows.table)
        for name in slices:
            _add_group_counts(groups[name], _group_values(rows.table, name), rows.table)
        worst = heapq.nlargest(WORST_RESPONSES, [*worst, *_find_worst(rows)])
    data.partition_groups = (
        sorted(groups[""].values(), key=lambda group: natural_key(group.value)) if data.partition_key else []
    )
    data.slices = {name: sorted(groups[name].values(), key=lambda group: (-group.scored, group.value)) for name in slices}
    data.explanations = count_explanations(output, scored, all_explanations)
    positions = [position for *_, position in worst]
    data.worst = read_responses(output, positions, label, data.explanations, scales or MemberScales()) if texts else []
    return data


def _count_rows(data: ReportData, table: pa.Table, partition: str) -> None:
    data.row_counts.update(table["status"].to_pylist())
    data.flagged += pc.sum(pc.equal(table["verdict"], HALLUCINATED)).as_py() or 0
    data.judge_decisions.update(filter(None, table["decided_by"].to_pylist()))
    del data.judge_decisions[ENSEMBLE]
    scored = table.filter(pc.is_valid(table["score"]))
    data.sentence_count += pc.sum(pc.list_value_length(scored["sentences"])).as_py() or 0
    data.score_moments = merge_moments([data.score_moments, compute_moments(scored["score"].to_numpy())])
    data.thresholds |= set(pc.unique(scored["threshold"]).to_pylist())
    failed = table.filter(pc.not_equal(table["status"], Status.OK.value)).select(["status", "row_id", "error"])
    for status in pc.unique(failed["status"]).to_pylist():
        examples = data.failures.setdefault(status, [])
        if len(examples) < EXAMPLES_PER_FAILURE:
            rows = failed.filter(pc.equal(failed["status"], status)).slice(0, EXAMPLES_PER_FAILURE - len(examples)).to_pylist()
            examples.extend((row["row_id"], partition, row["error"] or "") for row in rows)


def _group_values(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column's values as text; a timestamp as its day."""
    column = table[name]
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError(errors.NESTED_SLICE, column=name, type=column.type)
    return pc.strftime(column, format="%Y-%m-%d") if pa.types.is_timestamp(column.type) else column.cast(pa.string())


def _add_group_counts(groups: dict[str, GroupCounts], values: pa.Array | pa.ChunkedArray, table: pa.Table) -> None:
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
        group = groups.setdefault(value, GroupCounts(value))
        group.scored += scored
        group.flagged += flagged
        group.score_sum += score
    for value, status, rows in frame.filter(~pl.col("scored")).group_by("value", "status").len().iter_rows():
        groups[value].unscored[status] += rows


def _find_worst(batch: Rows) -> list[tuple[float, float, Position]]:
    """Find the rows with the lowest scores; among equal scores, those with the lowest sentence.

    The policy `clip` gives many rows the same score.
    """
    scores = batch.table["score"].to_numpy()
    rows = np.flatnonzero(~np.isnan(scores))
    if not len(rows):
        return []
    sentences = pc.take(batch.table["sentences"], pa.array(rows)).combine_chunks()
    starts = np.cumsum([0, *pc.list_value_length(sentences).to_pylist()])[:-1]
    lowest = np.fmin.reduceat(sentences.flatten().field("score").to_numpy(zero_copy_only=False), starts)
    order = np.lexsort((lowest, scores[rows]))[:WORST_RESPONSES]
    return [(-float(scores[rows[i]]), -float(lowest[i]), batch.position(int(rows[i]))) for i in order]
