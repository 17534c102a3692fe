"""How what a judge says becomes a verdict: rows of `scored/`, with the judge's decisions over the ensemble's."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.cascade import errors
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED, SCORED_SENTENCE, SUPPORTED


@dataclass(frozen=True)
class JudgeDecisions:
    """What a judge says of the rows that it could decide.

    Attributes:
        judge: Its name.
        flags_below: It finds a sentence unsupported whose value lies below.
        keys: `row_key` of each row, ascending, all different.
        counts: Sentences of each, > 0.
        values: A value a sentence, of all rows one after the other, as float32 gives it.
    """

    judge: str
    flags_below: float
    keys: Ints
    counts: Ints
    values: Floats

    @property
    def scores(self) -> Floats:
        """The number of each response: its worst sentence's value."""
        lowest: Floats = np.minimum.reduceat(self.values, self._starts) if len(self.keys) else np.array([])
        return lowest

    @property
    def _starts(self) -> Ints:
        return np.cumsum(self.counts) - self.counts

    def find_indices(self, keys: Ints) -> Ints:
        """Where rows stand among the decisions; -1 for a row that is not decided."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        near = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[near] == keys, near, -1)

    def list_sentence_values(self, places: Ints) -> Floats:
        """Values of the sentences of some of the rows, one after the other."""
        counts = self.counts[places]
        starts = np.repeat(self._starts[places] - (np.cumsum(counts) - counts), counts)
        values: Floats = self.values[starts + np.arange(counts.sum())]
        return values


def make_decisions(table: pa.Table, judge: str, flags_below: float) -> JudgeDecisions:
    """The decisions in rows of `escalated/`: those with the judge's member.

    Args:
        table: Columns `row_key` and `judge` (`schemas.columns.MEMBER`, or as much of it as has `sentence_scores`).
        judge: Name of the judge.
        flags_below: Value below which it finds a sentence unsupported.
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
    """Rows of `scored/` with a judge's decisions: its verdict is the row's, and its flags are those of the sentences.

    A response is hallucinated iff its worst sentence's value lies below the judge's limit, a sentence is flagged iff its own
    does. `score`, `probability`, `threshold` and the sentences' scores stay the ensemble's. Rows without a score stay without a
    verdict, and rows of which the judge says nothing stay as they are.

    Args:
        scored: Rows of `scored/`.
        decisions: What the judge says, of these rows or of others too.

    Raises:
        OutputError: The judge was asked about other sentences.
    """
    places = decisions.find_indices(scored["row_key"].to_numpy())
    decided = (places >= 0) & scored["verdict"].is_valid().to_numpy(zero_copy_only=False)
    if not decided.any():
        return scored
    mine = places[decided]
    score = np.full(scored.num_rows, np.nan)
    score[decided] = decisions.scores[mine]
    words = np.where(score[decided] < decisions.flags_below, HALLUCINATED, SUPPORTED)
    flags = decisions.list_sentence_values(mine) < decisions.flags_below
    columns = {
        "verdict": _replaced(scored["verdict"], decided, words),
        "decided_by": _replaced(scored["decided_by"], decided, np.full(len(mine), decisions.judge)),
        "judge_score": pa.array(score, mask=~decided),
        **_flags(scored, decided, decisions.counts[mine], flags, decisions.judge),
    }
    arrays = [columns.get(field.name, scored[field.name]) for field in scored.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=scored.schema)


def make_decided_by(verdicts: pa.Array) -> pa.Array:
    """`decided_by` of rows with these verdicts, of which no judge has said anything."""
    return pc.if_else(pc.is_valid(verdicts), ENSEMBLE, pa.scalar(None, pa.string()))


def _replaced(column: pa.Array, where: Bools, words: "np.ndarray[tuple[int], np.dtype[np.str_]]") -> pa.Array:
    return pc.replace_with_mask(column, pa.array(where), pa.array(words.tolist(), pa.string()))


def _flags(scored: pa.RecordBatch, decided: Bools, counts: Ints, flags: Bools, judge: str) -> dict[str, pa.Array]:
    """`sentences` with the judge's flags, and how many there are."""
    sentences = scored["sentences"]
    lengths = pc.fill_null(pc.list_value_length(sentences), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not np.array_equal(lengths[decided], counts):
        raise OutputError(errors.OTHER_SENTENCES, judge=judge)
    flat = sentences.flatten()
    of_decided = np.repeat(decided, lengths)
    fields = [flat.field(name) for name in SCORED_SENTENCE.names]
    place = SCORED_SENTENCE.get_field_index("flagged")
    fields[place] = pc.replace_with_mask(fields[place], pa.array(of_decided), pa.array(flags))
    structs = pa.StructArray.from_arrays(fields, fields=list(SCORED_SENTENCE))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    per_row = np.add.reduceat(flags.astype(np.int64), np.cumsum(counts) - counts).astype(np.int32)
    return {
        "sentences": pa.ListArray.from_arrays(offsets, structs, mask=sentences.is_null()),
        "flagged_sentences": pc.replace_with_mask(scored["flagged_sentences"], pa.array(decided), pa.array(per_row)),
    }
