"""List every response with its verdict, as one flat row."""

from collections.abc import Iterator

import pyarrow as pa

from ragassay.jobs.export.rows import TEXTS, ExportOptions, ExportTally, Row, RowReader, make_record
from ragassay.jobs.output.scored_dataset import finite_or_none
from ragassay.pipeline.verdict.deciding import find_deciding_sentences
from ragassay.schemas.columns import SUPPORTED

VERDICT_SCHEMA = pa.schema(
    [
        ("row_id", pa.string()),
        ("partition", pa.string()),
        ("verdict", pa.string()),
        ("probability", pa.float64()),
        ("score", pa.float64()),
        ("question", pa.string()),
        ("response", pa.string()),
        ("deciding_sentences", pa.list_(pa.string())),
        ("context", pa.list_(pa.string())),
        ("status", pa.string()),
        ("error", pa.string()),
        ("run_id", pa.string()),
    ]
)
"""A response: `deciding_sentences` has the texts of its flagged sentences, or of the lowest if the aggregate decided."""


def list_verdicts(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """List all rows, also those without a verdict."""
    names = ["row_id", "verdict", "probability", "score", *TEXTS, "sentences", "status", "error", "run_id"]
    for row in read(names):
        tally.supported += row["verdict"] == SUPPORTED
        tally.used += 1
        deciding = [row["sentences"][i]["text"] for i in find_deciding_sentences(row["verdict"], row["sentences"])]
        numbers = {name: finite_or_none(row[name]) for name in ("probability", "score")}
        values = {**row, **numbers, "deciding_sentences": deciding}
        yield make_record(row, values, VERDICT_SCHEMA)
