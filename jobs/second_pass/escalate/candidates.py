"""Where the cascade chooses from: the scored responses of partitions, and how doubtful each is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, to_batch
from ragassay.jobs.second_pass.escalate import errors
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.cascade.choose import select_most_doubtful
from ragassay.pipeline.cascade.config import UNCERTAINTY, EscalationPolicy
from ragassay.pipeline.cascade.dynamic import ScoreTotal, select_escalated, sum_scores
from ragassay.pipeline.errors import InputError
from ragassay.pipeline.members import ValueKind, read_members
from ragassay.schemas.columns import ENSEMBLE, Status

MEMBER_COLUMNS = [f"members.list.element.{name}" for name in ("name", "sentence_scores.list.element", "response_score")]


@dataclass
class Candidates:
    """The scored responses of some partitions.

    Attributes:
        files: Their files.
        file_numbers: Number of each one's file in `files`.
        keys: `row_key` of each.
        certainty: The lower, the more doubtful: |score - tau|, or the member's value; NaN where it has none.
        judged: Whether its verdict is a judge's by now.
        order: Values of the column that they stand in order of; None without one.
    """

    files: Sequence[DataFile]
    file_numbers: Ints
    keys: Ints
    certainty: Floats
    has_judge_verdict: Bools
    order: pa.ChunkedArray | None


def read_candidates(scored: ScoredDataset, policy: EscalationPolicy, values: Mapping[str, str]) -> Candidates:
    """Look through partitions of `scored/`: a few numbers a response stay in memory.

    Args:
        scored: The partitions.
        policy: What makes a response doubtful.
        values: Member -> which of its numbers is used.

    Raises:
        OutputError: The verdicts lack the member, or can't be read.
        InputError: A partition lacks the column to order by.
    """
    number_of = {file: number for number, file in enumerate(scored.files)}
    numbers, keys, certainty, judged, order = [], [], [], [], []
    if policy.order is not None:
        for part in scored.partitions.values():
            part.require_columns([policy.order], "escalation.order")
    for file, table in read_scored_tables(scored, policy.when, policy.order):
        keys.append(table["row_key"].to_numpy())
        numbers.append(np.full(len(table), number_of[file]))
        certainty.append(compute_certainty(table, policy.when, values))
        judged.append(pc.fill_null(pc.not_equal(table["decided_by"], ENSEMBLE), False).to_numpy())
        if policy.order is not None:
            order.append(table.select([policy.order]))
    return Candidates(
        files=scored.files,
        file_numbers=np.concatenate([np.array([], np.int64), *numbers]),
        keys=np.concatenate([np.array([], np.int64), *keys]),
        certainty=np.concatenate([np.array([]), *certainty]),
        has_judge_verdict=np.concatenate([np.array([], bool), *judged]),
        order=_one_column(order, policy.order) if policy.order is not None and order else None,
    )


def read_scored_tables(scored: ScoredDataset, when: str, order: str | None = None) -> Iterator[tuple[DataFile, pa.Table]]:
    """The scored rows with what makes them doubtful, in batches, each with its file."""
    columns = ["row_key", "status", "score", "threshold", "decided_by", *([order] if order else [])]
    for rows in scored.read_batches([*columns, *(MEMBER_COLUMNS if when != UNCERTAINTY else [])]):
        yield rows.file, rows.table.filter(pc.equal(rows.table["status"], Status.OK.value))


def compute_certainty(table: pa.Table, when: str, values: Mapping[str, str]) -> Floats:
    """How certain each response is: the distance of its score to the threshold, or the member's value of it."""
    if when == UNCERTAINTY:
        distance: Floats = np.abs(table["score"].to_numpy() - table["threshold"].to_numpy())
        return distance
    if not len(table):
        return np.array([])
    return ValueKind(values[when]).response_values(read_members(to_batch(table), [when])[when])


def select_responses(found: Candidates, escalate: EscalationPolicy, before: ScoreTotal) -> Ints:
    """The responses to escalate.

    Args:
        found: Where to choose from.
        escalate: How.
        before: For the dynamic threshold: the responses of partitions that have been escalated.

    Returns:
        Places in `found`, ascending.
    """
    if escalate.share is not None:
        return select_most_doubtful(found.keys, found.certainty, escalate.share)
    order = _in_order(found)
    order = order[np.isfinite(found.certainty[order])]
    return np.sort(order[select_escalated(compute_doubt(found.certainty[order]), before)])


def compute_doubt(certainty: Floats) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """S of the dynamic threshold: a member's value with its sign turned, exact, since values are float32."""
    return -certainty.astype(np.float32)


def sum_earlier_doubt(scored: ScoredDataset, escalate: EscalationPolicy, values: Mapping[str, str]) -> ScoreTotal:
    """What the responses of partitions come down to for the dynamic threshold of those behind them."""
    total = ScoreTotal()
    for _, table in read_scored_tables(scored, escalate.when):
        certainty = compute_certainty(table, escalate.when, values)
        total = total + sum_scores(compute_doubt(certainty[np.isfinite(certainty)]))
    return total


def _in_order(found: Candidates) -> Ints:
    """Places of the responses as they stand in a row: by the column, nulls last, equal ones by `row_key`."""
    columns = {"key": pa.array(found.keys)}
    by = [("key", "ascending")]
    if found.order is not None:
        columns, by = {"order": found.order, **columns}, [("order", "ascending"), *by]
    return np.asarray(pc.sort_indices(pa.table(columns), by).to_numpy(), dtype=np.int64)


def _one_column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    try:
        column = pa.concat_tables(tables, promote_options="permissive")[name]
        pc.sort_indices(column.slice(0, 0))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(errors.UNSORTABLE_COLUMN, column=name, reason=error) from error
    return column
