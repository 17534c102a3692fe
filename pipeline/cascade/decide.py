"""Replace verdicts of the ensemble with verdicts of a judge, in rows of `scored/`."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.cascade import errors
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED, SCORED_SENTENCE, SUPPORTED, SentenceState


@dataclass(frozen=True)
class JudgeDecisions:
    """The decisions of a judge.

    Attributes:
        judge: Name of the judge.
        flags_below: The judge finds a sentence unsupported if its value is below this.
        keys: `row_key` of each decided row; ascending and unique.
        counts: Number of sentences of each row, > 0.
        values: Values of the sentences of all rows, concatenated; rounded to float32.
    """

    judge: str
    flags_below: float
    keys: Ints
    counts: Ints
    values: Floats

    @property
    def scores(self) -> Floats:
        """The lowest sentence value of each row."""
        lowest: Floats = np.minimum.reduceat(self.values, self._starts) if len(self.keys) else np.array([])
        return lowest

    @property
    def _starts(self) -> Ints:
        return np.cumsum(self.counts) - self.counts

    def find_indices(self, keys: Ints) -> Ints:
        """Return the index of each row in the decisions; -1 for rows without a decision."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        indices = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[indices] == keys, indices, -1)

    def list_sentence_values(self, indices: Ints) -> Floats:
        """Return the values of the sentences of some rows, concatenated."""
        counts = self.counts[indices]
        starts = np.repeat(self._starts[indices] - (np.cumsum(counts) - counts), counts)
        values: Floats = self.values[starts + np.arange(counts.sum())]
        return values


def make_decisions(table: pa.Table, judge: str, flags_below: float) -> JudgeDecisions:
    """Make decisions from rows of `escalated/`; rows without output of the judge have none.

    Args:
        table: Columns `row_key` and `judge` (`schemas.columns.MEMBER`, or a part of it with `sentence_scores`).
        judge: Name of the judge.
        flags_below: The judge finds a sentence unsupported if its value is below this.
    """
    table = table.filter(pc.is_valid(table["judge"])).sort_by("row_key").combine_chunks()
    member = pa.concat_arrays(table["judge"].chunks) if len(table) else pa.array([], table["judge"].type)
    values = member.field("sentence_scores")
    return JudgeDecisions(
        judge=judge,
        flags_below=flags_below,
        keys=table["row_key"].to_numpy(),
        counts=pc.list_value_length(values).to_numpy(zero_copy_only=False).astype(np.int64),
        values=values.flatten().to_numpy(zero_copy_only=False).astype(np.float64),
    )


def replace_verdicts(scored: pa.RecordBatch, decisions: JudgeDecisions) -> pa.RecordBatch:
    """Replace the verdicts and sentence states of rows that the judge decided.

    A sentence whose value is below `decisions.flags_below` is flagged, any other is supported. A response is hallucinated if
    one of its sentences is flagged. `threshold`, scores and probabilities stay those of the ensemble. Rows without a verdict or
    without a decision stay unchanged.

    Args:
        scored: Rows of `scored/`.
        decisions: Decisions on these rows, and possibly on others.

    Raises:
        OutputError: The judge was asked about other sentences.
    """
    indices = decisions.find_indices(scored["row_key"].to_numpy())
    decided = (indices >= 0) & scored["verdict"].is_valid().to_numpy(zero_copy_only=False)
    if not decided.any():
        return scored
    indices = indices[decided]
    judge_score = np.full(scored.num_rows, np.nan)
    judge_score[decided] = decisions.scores[indices]
    verdicts = np.where(judge_score[decided] < decisions.flags_below, HALLUCINATED, SUPPORTED)
    flags = decisions.list_sentence_values(indices) < decisions.flags_below
    columns = {
        "verdict": _replace_text(scored["verdict"], decided, verdicts),
        "decided_by": _replace_text(scored["decided_by"], decided, np.full(len(indices), decisions.judge)),
        "judge_score": pa.array(judge_score, mask=~decided),
        **_replace_states(scored, decided, decisions.counts[indices], flags, decisions.judge),
    }
    arrays = [columns.get(field.name, scored[field.name]) for field in scored.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=scored.schema)


def make_decided_by(verdicts: pa.Array) -> pa.Array:
    """Make the column `decided_by` of rows with verdicts of the ensemble."""
    return pc.if_else(pc.is_valid(verdicts), ENSEMBLE, pa.scalar(None, pa.string()))


def _replace_text(column: pa.Array, mask: Bools, texts: "np.ndarray[tuple[int], np.dtype[np.str_]]") -> pa.Array:
    return pc.replace_with_mask(column, pa.array(mask), pa.array(texts.tolist(), pa.string()))


def _replace_states(scored: pa.RecordBatch, decided: Bools, counts: Ints, flags: Bools, judge: str) -> dict[str, pa.Array]:
    """Make the columns `sentences` and `flagged_sentences` with the judge's decisions."""
    sentences = scored["sentences"]
    lengths = pc.fill_null(pc.list_value_length(sentences), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not np.array_equal(lengths[decided], counts):
        raise OutputError(errors.OTHER_SENTENCES, judge=judge)
    flat = sentences.flatten()
    in_decided_row = np.repeat(decided, lengths)
    fields = [flat.field(name) for name in SCORED_SENTENCE.names]
    state = SCORED_SENTENCE.get_field_index("state")
    states = pc.if_else(pa.array(flags), SentenceState.FLAGGED.value, SentenceState.SUPPORTED.value)
    fields[state] = pc.replace_with_mask(fields[state], pa.array(in_decided_row), states)
    structs = pa.StructArray.from_arrays(fields, fields=list(SCORED_SENTENCE))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    flags_per_row = np.add.reduceat(flags.astype(np.int64), np.cumsum(counts) - counts).astype(np.int32)
    return {
        "sentences": pa.ListArray.from_arrays(offsets, structs, mask=sentences.is_null()),
        "flagged_sentences": pc.replace_with_mask(scored["flagged_sentences"], pa.array(decided), pa.array(flags_per_row)),
    }
