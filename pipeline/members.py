"""Members of the ensemble as everything behind the scoring sees them: names, and which number of each is read from the rows.

What is particular to a kind of member is said by its `Value`; nobody asks what kind it is.
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
from ragassay.pipeline.verdict.normalize import Fit, fit_detector, fit_member
from ragassay.schemas.columns import MEMBER, Status
from ragassay.schemas.stats import Moments


class Value(StrEnum):
    """The number of a member that is normalised: made of an SLM's log P(yes) and log P(no), or its own score."""

    P_YES = "p_yes"
    P_YES_SHARE = "p_yes_share"
    LOG_ODDS = "log_odds"
    SCORE = "score"

    @property
    def of_logprobs(self) -> bool:
        """Whether it is made of log P(yes) and log P(no)."""
        return self is not Value.SCORE

    def of_sentences(self, name: str, member: pa.StructArray) -> Floats:
        """A member's number of every sentence, NaN where it has none.

        Args:
            name: The member's name, for the message.
            member: What it says, one struct a row (`schemas.columns.MEMBER`).

        Raises:
            OutputError: It is of another kind in these rows.
        """
        yes = member.field("log_p_yes")
        if yes.null_count if self.of_logprobs else len(yes) - yes.null_count:
            kind, other = ("a detector", "an SLM") if self.of_logprobs else ("an SLM", "a detector")
            raise OutputError(errors.MEMBER_KIND, member=name, kind=kind, wanted=other)
        if not self.of_logprobs:
            return np.asarray(member.field("sentence_scores").flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
        return member_values(self, *logprobs_of(member))

    def of_response(self, member: Mapping[str, Any]) -> float | None:
        """What a member alone decides a response by: an SLM its worst sentence's value, any other its value of the whole.

        Args:
            member: What it says, as a row of `scored/` has it.
        """
        if not self.of_logprobs:
            number = member["response_score"]
            return None if number is None else float(number)
        return min((float(v) for v in member["sentence_scores"]), default=None)

    def of_responses(self, member: pa.StructArray) -> Floats:
        """`of_response` of many: NaN where it has nothing to go by.

        Args:
            member: What it says, one struct a row; of `schemas.columns.MEMBER` the fields sentence_scores and response_score.
        """
        if not self.of_logprobs:
            return np.asarray(member.field("response_score").to_numpy(zero_copy_only=False), dtype=np.float64)
        scores = member.field("sentence_scores")
        counts = pc.fill_null(pc.list_value_length(scores), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        values = scores.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        lowest = np.full(len(counts), np.nan)
        if len(values):
            lowest[counts > 0] = np.minimum.reduceat(values, (np.cumsum(counts) - counts)[counts > 0])
        return lowest

    def fit(self, name: str, moments: Moments) -> Fit:
        """mu and sigma of a member. A detector may have little to say, and then every z-score is 0; an SLM that has is broken.

        Raises:
            FitError: An SLM has no value, or all of them are equal.
        """
        return fit_member(name, moments) if self.of_logprobs else fit_detector(moments)


def member_values(value: Value, log_p_yes: npt.ArrayLike, log_p_no: npt.ArrayLike) -> Floats:
    """The number that is normalised, from log P(yes) and log P(no): p_yes, p_yes_share = P(yes) / (P(yes) + P(no)), or
    log_odds = log P(yes) - log P(no)."""
    yes, no = np.asarray(log_p_yes, dtype=np.float64), np.asarray(log_p_no, dtype=np.float64)
    match value:
        case Value.P_YES:
            return np.asarray(np.exp(yes))
        case Value.P_YES_SHARE:
            return np.asarray(np.exp(yes - np.logaddexp(yes, no)))
        case Value.LOG_ODDS:
            return yes - no
        case Value.SCORE:
            raise ValueError("a score is not made of log-probabilities")


def logprobs_of(member: pa.StructArray) -> tuple[Floats, Floats]:
    """log P(yes) and log P(no) of every sentence, by an SLM."""
    yes, no = (member.field(key).flatten().to_numpy().astype(np.float64) for key in ("log_p_yes", "log_p_no"))
    return yes, no


def readable_scores(batch: pa.RecordBatch, values: Mapping[str, str]) -> list[tuple[dict[str, Floats], Ints]]:
    """`scores_of` stretches that are, together, a batch less the rows for which it raises: `finalize` gives those the status
    `error`."""
    found = contain(batch.num_rows, lambda some: scores_of(batch[some], values), lambda _, __: None)
    return [scores for scores in found if scores is not None]


def scores_of(batch: pa.RecordBatch, values: Mapping[str, str]) -> tuple[dict[str, Floats], Ints]:
    """Members' values of a batch of rows of `raw/` or `scored/`.

    Args:
        batch: Rows with `members`, `status` and, of `sentences`, at least `repeats`.
        values: Member -> which number is wanted.

    Returns:
        Member -> float64 array, the values of all sentences of the rows with status ok, one after the other, NaN where it has
        none, and where a sentence repeats what stands elsewhere; and the number of sentences a row with status ok.

    Raises:
        OutputError: The rows lack one of the members, or it is of another kind there.
    """
    structs = member_structs(batch, list(values))
    counts = np.array([], dtype=np.int64)
    for member in structs.values():
        counts = pc.list_value_length(member.field("sentence_scores")).to_numpy().astype(np.int64)
    found = {name: Value(values[name]).of_sentences(name, member) for name, member in structs.items()}
    sentences = batch["sentences"].filter(pc.equal(batch["status"], Status.OK.value)).flatten()
    repeats = pc.fill_null(sentences.field("repeats"), False).to_numpy(zero_copy_only=False).astype(bool)
    return {name: np.where(repeats, np.nan, numbers) for name, numbers in found.items()}, counts


NUMBERS = ["members", "status", "sentences.list.element.repeats"]
"""Columns of a Parquet file that `scores_of` needs, and no text."""


def member_structs(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.StructArray]:
    """What each member says of the rows with status ok: member -> one struct a row (`schemas.columns.MEMBER`).

    Raises:
        OutputError: The rows lack one of the members.
    """
    members = batch["members"].filter(pc.equal(batch["status"], Status.OK.value))
    if len(members) == 0:
        return {name: pa.array([], MEMBER) for name in names}
    size = len(members[0])
    flat = members.flatten()
    found = flat.field("name").to_numpy(zero_copy_only=False).reshape(-1, size)
    structs = {}
    for name in names:
        place = np.flatnonzero(found[0] == name)
        if len(place) != 1 or not (found[:, place[0]] == name).all():
            raise OutputError(errors.NO_MEMBER, member=name, members=sorted(set(found[0])))
        structs[name] = flat.take(pa.array(np.arange(place[0], len(flat), size)))
    return structs
