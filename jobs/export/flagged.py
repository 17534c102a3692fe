"""The flagged sentences, for reviewers to fill in."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import NO_FLAGGED_SENTENCE, NOT_SCORED, SCALARS, TEXTS, Options, Read, Row, Tally
from ragassay.schemas.columns import SUPPORTED

REVIEW = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("sentence", pa.int32()),
        ("text", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
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
"""A flagged sentence. `sentence` counts from 0, [start, end) are characters of the response, `supported` is the reviewer's."""


def flagged(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """The flagged sentences, whatever the verdict on their response."""
    for row in read([*SCALARS, *TEXTS, "sentences"]):
        tally.passed += row["verdict"] == SUPPORTED
        found = [(i, s) for i, s in enumerate(row["sentences"] or []) if s["flagged"]]
        if not found:
            tally.left_out[NOT_SCORED if row["verdict"] is None else NO_FLAGGED_SENTENCE] += 1
            continue
        tally.used += 1
        for i, sentence in found:
            place = {"sentence": i, "sentence_score": sentence["score"], "response_score": row["score"], "supported": None}
            yield {**row, **place, **{name: sentence[name] for name in ("text", "start", "end")}}
