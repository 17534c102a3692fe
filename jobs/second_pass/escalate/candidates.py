"""Read the scored responses of partitions, and select the doubtful ones."""

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
from ragassay.pipeline.member_values import ValueKind, read_members
from ragassay.schemas.columns import ENSEMBLE, Status

MEMBER_COLUMNS = [f"members.list.element.{name}" for name in ("name", "sentence_scores.list.element", "response_score")]


@dataclass
class Candidates:
    """The scored responses of some partitions.

    Attributes:
        files: Files of the partitions.
        file_numbers: Index of each response's file in `files`.
        keys: `row_key` of each response.
        certainty: The lower, the more doubtful: |score - threshold|, or the member's value; NaN if unknown.
        has_judge_verdict: Whether a judge decided the response.
        order: Values of the column that orders the responses; None without one.
    """

    files: Sequence[DataFile]
    file_numbers: Ints
    keys: Ints
    certainty: Floats
    has_judge_verdict: Bools
    order: pa.ChunkedArray | None


def read_candidates(scored: ScoredDataset, policy: EscalationPolicy, values: Mapping[str, str]) -> Candidates:
    """Read the candidates of partitions of `scored/`.

    Args:
        scored: The partitions.
        policy: Which responses are doubtful.
        values: Member -> kind of value that is used (`ValueKind`).

    Raises:
        OutputError: The member is missing, or verdicts can't be read.
        InputError: A partition lacks the column that orders the responses.
    """
    file_number = {file: number for number, file in enumerate(scored.files)}
    file_numbers, keys, certainty, has_judge_verdict, order = [], [], [], [], []
    if policy.order is not None:
        for partition in scored.partitions.values():
            partition.require_columns([policy.order], "escalation.order")
    for file, table in read_scored_tables(scored, policy.when, policy.order):
        keys.append(table["row_key"].to_numpy())
        file_numbers.append(np.full(len(table), file_number[file]))
        certainty.append(compute_certainty(table, policy.when, values))
        has_judge_verdict.append(pc.fill_null(pc.not_equal(table["decided_by"], ENSEMBLE), False).to_numpy())
        if policy.order is not None:
            order.append(table.select([policy.order]))
    return Candidates(
        files=scored.files,
        file_numbers=np.concatenate([np.array([], np.int64), *file_numbers]),
        keys=np.concatenate([np.array([], np.int64), *keys]),
        certainty=np.concatenate([np.array([]), *certainty]),
        has_judge_verdict=np.concatenate([np.array([], bool), *has_judge_verdict]),
        order=_concat_column(order, policy.order) if policy.order is not None and order else None,
    )


def read_scored_tables(scored: ScoredDataset, when: str, order: str | None = None) -> Iterator[tuple[DataFile, pa.Table]]:
    """Read the rows with a score in batches, with their files, and the columns that `compute_certainty` needs."""
    columns = ["row_key", "status", "score", "threshold", "decided_by", *([order] if order else [])]
    for rows in scored.read_batches([*columns, *(MEMBER_COLUMNS if when != UNCERTAINTY else [])]):
        yield rows.file, rows.table.filter(pc.equal(rows.table["status"], Status.OK.value))


def compute_certainty(table: pa.Table, when: str, values: Mapping[str, str]) -> Floats:
    """Compute the certainty of each response: the distance of its score to the threshold, or the member's value."""
    if when == UNCERTAINTY:
        distance: Floats = np.abs(table["score"].to_numpy() - table["threshold"].to_numpy())
        return distance
    if not len(table):
        return np.array([])
    return ValueKind(values[when]).response_values(read_members(to_batch(table), [when])[when])


def select_responses(candidates: Candidates, policy: EscalationPolicy, earlier: ScoreTotal) -> Ints:
    """Select the responses to escalate.

    Args:
        candidates: Candidates.
        policy: Which responses are escalated.
        earlier: For the dynamic threshold: doubt of the responses in partitions that are already escalated.

    Returns:
        Indices of the selected candidates, ascending.
    """
    if policy.share is not None:
        return select_most_doubtful(candidates.keys, candidates.certainty, policy.share)
    order = _sort_candidates(candidates)
    order = order[np.isfinite(candidates.certainty[order])]
    return np.sort(order[select_escalated(compute_doubt(candidates.certainty[order]), earlier)])


def compute_doubt(certainty: Floats) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Compute S of the dynamic threshold: the negated member value. The conversion is exact, as values are float32."""
    return -certainty.astype(np.float32)


def sum_earlier_doubt(scored: ScoredDataset, policy: EscalationPolicy, values: Mapping[str, str]) -> ScoreTotal:
    """Sum the doubt of the responses of partitions, for the dynamic threshold of later ones."""
    total = ScoreTotal()
    for _, table in read_scored_tables(scored, policy.when):
        certainty = compute_certainty(table, policy.when, values)
        total = total + sum_scores(compute_doubt(certainty[np.isfinite(certainty)]))
    return total


def _sort_candidates(candidates: Candidates) -> Ints:
    """Return the indices of candidates sorted by the column, nulls last, then by `row_key`."""
    columns = {"key": pa.array(candidates.keys)}
    sort_keys = [("key", "ascending")]
    if candidates.order is not None:
        columns, sort_keys = {"order": candidates.order, **columns}, [("order", "ascending"), *sort_keys]
    return np.asarray(pc.sort_indices(pa.table(columns), sort_keys).to_numpy(), dtype=np.int64)


def _concat_column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    try:
        column = pa.concat_tables(tables, promote_options="permissive")[name]
        pc.sort_indices(column.slice(0, 0))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(errors.UNSORTABLE_COLUMN, column=name, reason=error) from error
    return column
