"""List the sentences that decided that responses are hallucinated, for reviewers to label."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import NOT_SCORED, SCALARS, TEXTS, ExportOptions, ExportTally, Row, RowReader, make_record
from ragassay.jobs.output.scored_dataset import finite_or_none
from ragassay.pipeline.verdict.deciding import find_deciding_sentences
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

FLAGGED_SCHEMA = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("sentence", pa.int32()),
        ("text", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("state", pa.string()),
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
"""A deciding sentence: `sentence` counts from 1, [start, end) are characters of the response, `probability` is P(supported),
null without a calibration that has it, and `supported` is the reviewer's label.
"""


def list_sentences(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """List the flagged sentences, and the lowest sentence of each other hallucinated response."""
    for row in read([*SCALARS, *TEXTS, "sentences"]):
        tally.supported += row["verdict"] == SUPPORTED
        if row["verdict"] != HALLUCINATED:
            tally.omitted[row["verdict"] or NOT_SCORED] += 1
            continue
        tally.used += 1
        for i in find_deciding_sentences(row["verdict"], row["sentences"]):
            sentence = row["sentences"][i]
            scores = {
                "sentence": i + 1,
                "sentence_score": finite_or_none(sentence["score"]),
                "response_score": finite_or_none(row["score"]),
                "supported": None,
            }
            values = {**row, **scores, **{name: sentence[name] for name in ("text", "start", "end", "state", "probability")}}
            yield make_record(row, values, FLAGGED_SCHEMA)
