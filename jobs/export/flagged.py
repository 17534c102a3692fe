"""List flagged sentences, for reviewers to label."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import (
    NO_FLAGGED_SENTENCE,
    NOT_SCORED,
    SCALARS,
    TEXTS,
    ExportOptions,
    ExportTally,
    Row,
    RowReader,
)
from ragassay.jobs.output.scored_dataset import finite_or_none
from ragassay.schemas.columns import SUPPORTED, is_flagged

FLAGGED_SCHEMA = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("sentence", pa.int32()),
        ("text", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("probability", pa.float64()),
        ("sentence_score", pa.float64()),
        ("response_score", pa.float64()),
        ("threshold", pa.float64()),
        ("question", pa.string()),
        ("context", pa.list_(pa.string())),
        ("response", pa.string()),
        ("run_id", pa.string()),
        ("supported", pa.bool_()),
    ]
)
"""A flagged sentence: `sentence` counts from 0, [start, end) are characters of the response, `probability` is P(supported),
null without a calibration that has it, and `supported` is the reviewer's label.
"""


def list_flagged_sentences(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """List the flagged sentences, whatever the verdict on their response."""
    for row in read([*SCALARS, *TEXTS, "sentences"]):
        tally.supported += row["verdict"] == SUPPORTED
        flagged = [(i, sentence) for i, sentence in enumerate(row["sentences"] or []) if is_flagged(sentence)]
        if not flagged:
            tally.omitted[NOT_SCORED if row["verdict"] is None else NO_FLAGGED_SENTENCE] += 1
            continue
        tally.used += 1
        for i, sentence in flagged:
            scores = {
                "sentence": i,
                "sentence_score": finite_or_none(sentence["score"]),
                "response_score": finite_or_none(row["score"]),
                "supported": None,
            }
            values = {**row, **scores, **{name: sentence[name] for name in ("text", "start", "end", "probability")}}
            yield {name: values[name] for name in FLAGGED_SCHEMA.names}
