"""Members of the ensemble as the steps after scoring see them: a name, and the kind of value that is read from the rows.

A member's `ValueKind` covers everything that depends on the kind of member; no other code distinguishes kinds.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline import errors
from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.contain import contain
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.verdict.ensemble import NormalizationFit, fit_detector, fit_member
from ragassay.schemas.columns import MEMBER, Status
from ragassay.schemas.stats import Moments


class ValueKind(StrEnum):
    """Kind of a member's value: computed from an SLM's log P(yes) and log P(no), or the member's own score."""

    P_YES = "p_yes"
    P_YES_SHARE = "p_yes_share"
    LOG_ODDS = "log_odds"
    SCORE = "score"

    @property
    def is_from_logprobs(self) -> bool:
        """Whether the value is computed from log P(yes) and log P(no)."""
        return self is not ValueKind.SCORE

    def sentence_values(self, name: str, member: pa.StructArray) -> Floats:
        """Return a member's value for every sentence, NaN if it has none.

        Args:
            name: Name of the member, for the message.
            member: Output of the member, one struct per row (`schemas.columns.MEMBER`).

        Raises:
            OutputError: The member has another kind in these rows.
        """
        yes = member.field("log_p_yes")
        if yes.null_count if self.is_from_logprobs else len(yes) - yes.null_count:
            kind, expected = ("a detector", "an SLM") if self.is_from_logprobs else ("an SLM", "a detector")
            raise OutputError(errors.MEMBER_KIND, member=name, kind=kind, expected=expected)
        if not self.is_from_logprobs:
            return np.asarray(member.field("sentence_scores").flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
        return compute_values_from_logprobs(self, *read_logprobs(member))

    def response_value(self, member: Mapping[str, Any]) -> float | None:
        """Return the value by which a member alone decides a response: the lowest sentence value of an SLM, else its response
        value.

        Args:
            member: Output of the member in a row of `scored/`.
        """
        if not self.is_from_logprobs:
            number = member["response_score"]
            return None if number is None else float(number)
        return min((float(score) for score in member["sentence_scores"]), default=None)

    def response_values(self, member: pa.StructArray) -> Floats:
        """Return `response_value` of many rows, NaN without evidence.

        Args:
            member: Output of the member, one struct per row; of `schemas.columns.MEMBER` it needs sentence_scores and
                response_score.
        """
        if not self.is_from_logprobs:
            return np.asarray(member.field("response_score").to_numpy(zero_copy_only=False), dtype=np.float64)
        scores = member.field("sentence_scores")
        counts = pc.fill_null(pc.list_value_length(scores), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        values = scores.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        lowest = np.full(len(counts), np.nan)
        if len(values):
            lowest[counts > 0] = np.minimum.reduceat(values, (np.cumsum(counts) - counts)[counts > 0])
        return lowest

    def fit(self, name: str, moments: Moments) -> NormalizationFit:
        """Fit mu and sigma of a member. A detector without evidence gets z-scores of 0; an SLM without scores is an error.

        Raises:
            FitError: An SLM has no value, or all of its values are equal.
        """
        return fit_member(name, moments) if self.is_from_logprobs else fit_detector(moments)


def compute_values_from_logprobs(value: ValueKind, log_p_yes: npt.ArrayLike, log_p_no: npt.ArrayLike) -> Floats:
    """Compute member values from log P(yes) and log P(no): p_yes, p_yes_share = P(yes) / (P(yes) + P(no)), or
    log_odds = log P(yes) - log P(no)."""
    yes, no = np.asarray(log_p_yes, dtype=np.float64), np.asarray(log_p_no, dtype=np.float64)
    match value:
        case ValueKind.P_YES:
            return np.asarray(np.exp(yes))
        case ValueKind.P_YES_SHARE:
            return np.asarray(np.exp(yes - np.logaddexp(yes, no)))
        case ValueKind.LOG_ODDS:
            return yes - no
        case ValueKind.SCORE:
            raise ValueError("a score is not made of log-probabilities")


def read_logprobs(member: pa.StructArray) -> tuple[Floats, Floats]:
    """Return an SLM's log P(yes) and log P(no) of every sentence."""
    yes, no = (member.field(field).flatten().to_numpy().astype(np.float64) for field in ("log_p_yes", "log_p_no"))
    return yes, no


def read_scores_contained(batch: pa.RecordBatch, values: Mapping[str, str]) -> list[tuple[dict[str, Floats], Ints]]:
    """Read the scores of a batch in ranges, without the rows for which `read_scores` raises; `finalize` gives those the status
    `error`."""
    ranges = contain(batch.num_rows, lambda some: read_scores(batch[some], values), lambda _, __: None)
    return [scores for scores in ranges if scores is not None]


def read_scores(batch: pa.RecordBatch, values: Mapping[str, str]) -> tuple[dict[str, Floats], Ints]:
    """Read the members' values from a batch of rows of `raw/` or `scored/`.

    Args:
        batch: Rows with `members`, `status` and, of `sentences`, at least `repeats`.
        values: Member -> kind of value (`ValueKind`).

    Returns:
        Member -> float64 array of the values of all sentences in rows with status ok, NaN without a value or for a repeated
        sentence; and the number of sentences per row with status ok.

    Raises:
        OutputError: The rows lack a member, or the member has another kind.
    """
    structs = read_members(batch, list(values))
    counts = np.array([], dtype=np.int64)
    for member in structs.values():
        counts = pc.list_value_length(member.field("sentence_scores")).to_numpy().astype(np.int64)
    all_numbers = {name: ValueKind(values[name]).sentence_values(name, member) for name, member in structs.items()}
    sentences = batch["sentences"].filter(pc.equal(batch["status"], Status.OK.value)).flatten()
    repeats = pc.fill_null(sentences.field("repeats"), False).to_numpy(zero_copy_only=False).astype(bool)
    return {name: np.where(repeats, np.nan, numbers) for name, numbers in all_numbers.items()}, counts


SCORE_COLUMNS = ["members", "status", "sentences.list.element.repeats"]
"""Columns of a Parquet file that `read_scores` needs, without texts."""


def read_members(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.StructArray]:
    """Return the output of each member in rows with status ok: member -> one struct per row (`schemas.columns.MEMBER`).

    Raises:
        OutputError: The rows lack a member.
    """
    members = batch["members"].filter(pc.equal(batch["status"], Status.OK.value))
    if len(members) == 0:
        return {name: pa.array([], MEMBER) for name in names}
    size = len(members[0])
    flat = members.flatten()
    member_names = flat.field("name").to_numpy(zero_copy_only=False).reshape(-1, size)
    structs = {}
    for name in names:
        index = np.flatnonzero(member_names[0] == name)
        if len(index) != 1 or not (member_names[:, index[0]] == name).all():
            raise OutputError(errors.NO_MEMBER, member=name, members=sorted(set(member_names[0])))
        structs[name] = flat.take(pa.array(np.arange(index[0], len(flat), size)))
    return structs
