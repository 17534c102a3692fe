"""Export responses with a flagged sentence to Label Studio or Argilla: every sentence is a span with RAGAssay's verdict."""

from collections.abc import Iterator, Mapping
from typing import Any

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
from ragassay.schemas.review import ReviewLabel

TASK_SCHEMA = pa.schema([])
"""Tasks and records are nested: they are written as JSON only, which needs no schema."""

LABEL_FIELD = "sentences"
"""Name of the labels: the Labels tag of Label Studio, the span question of Argilla."""


def make_label_studio_tasks(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """Make Label Studio tasks; verdicts are predictions, with P(supported), which Label Studio shows before anybody labels."""
    for row in _read_flagged_rows(read, tally):
        regions = [
            {
                "id": f"sentence-{number}",
                "from_name": LABEL_FIELD,
                "to_name": "response",
                "type": "labels",
                "score": sentence["probability"],
                "value": {**_span(sentence), "text": sentence["text"], "labels": [_verdict_label(sentence)]},
            }
            for number, sentence in enumerate(row["sentences"])
        ]
        prediction = {"model_version": row["run_id"], "score": row["probability"], "result": regions}
        yield {"data": {**_texts(row), **_metadata(row)}, "predictions": [prediction]}


def make_argilla_records(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """Make Argilla records; RAGAssay's verdicts are suggestions."""
    for row in _read_flagged_rows(read, tally):
        sentences = row["sentences"]
        suggestion = {
            "value": [{**_span(sentence), "label": _verdict_label(sentence)} for sentence in sentences],
            "score": [sentence["probability"] for sentence in sentences],
            "agent": row["run_id"],
        }
        if None in suggestion["score"]:
            suggestion["score"] = None
        origin = {name: value for name, value in _metadata(row).items() if value is not None}
        name = f"{row['partition']}/{row['row_id']}" if row["partition"] else row["row_id"]
        yield {"id": name, "fields": _texts(row), "metadata": origin, "suggestions": {LABEL_FIELD: suggestion}}


def _read_flagged_rows(read: RowReader, tally: ExportTally) -> Iterator[Row]:
    for row in read([*SCALARS, *TEXTS, "sentences"]):
        tally.supported += row["verdict"] == SUPPORTED
        if any(is_flagged(sentence) for sentence in row["sentences"] or []):
            tally.used += 1
            yield row
        else:
            tally.omitted[NOT_SCORED if row["verdict"] is None else NO_FLAGGED_SENTENCE] += 1


def _verdict_label(sentence: Mapping[str, Any]) -> str:
    return (ReviewLabel.UNSUPPORTED if is_flagged(sentence) else ReviewLabel.SUPPORTED).value


def _span(sentence: Mapping[str, Any]) -> dict[str, int]:
    return {"start": sentence["start"], "end": sentence["end"]}


def _texts(row: Row) -> dict[str, str]:
    context = "\n\n".join(passage for passage in row["context"] or [] if passage)
    return {"question": row["question"] or "", "context": context, "response": row["response"]}


def _metadata(row: Row) -> dict[str, Any]:
    names = ("row_id", "partition", "verdict", "run_id")
    return {**{name: row[name] for name in names}, "score": finite_or_none(row["score"])}
