"""Responses with a flagged sentence, for people in Label Studio or Argilla: every sentence a span with our opinion."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragassay.jobs.export.rows import NO_FLAGGED_SENTENCE, NOT_SCORED, SCALARS, TEXTS, Options, Read, Row, Tally, finite
from ragassay.schemas.columns import SUPPORTED
from ragassay.schemas.review import ReviewLabel

SPANS = "sentences"
"""Name of what people label: the Labels tag of Label Studio, the span question of Argilla."""


def label_studio(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """Tasks of Label Studio; our opinion is a prediction, which it shows before anybody has labelled."""
    for row in _with_flags(read, tally):
        regions = [
            {
                "id": f"sentence-{number}",
                "from_name": SPANS,
                "to_name": "response",
                "type": "labels",
                "score": finite(sentence["score"]),
                "value": {**_place(sentence), "text": sentence["text"], "labels": [_opinion(sentence)]},
            }
            for number, sentence in enumerate(row["sentences"])
        ]
        prediction = {"model_version": row["run_id"], "score": finite(row["score"]), "result": regions}
        yield {"data": {**_texts(row), **_origin(row)}, "predictions": [prediction]}


def argilla(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """Records of Argilla; our opinion is a suggestion."""
    for row in _with_flags(read, tally):
        sentences = row["sentences"]
        suggestion = {
            "value": [{**_place(sentence), "label": _opinion(sentence)} for sentence in sentences],
            "score": [_share(sentence["score"]) for sentence in sentences],
            "agent": row["run_id"],
        }
        if None in suggestion["score"]:
            suggestion["score"] = None
        origin = {name: value for name, value in _origin(row).items() if value is not None}
        name = f"{row['partition']}/{row['row_id']}" if row["partition"] else row["row_id"]
        yield {"id": name, "fields": _texts(row), "metadata": origin, "suggestions": {SPANS: suggestion}}


def _with_flags(read: Read, tally: Tally) -> Iterator[Row]:
    for row in read([*SCALARS, *TEXTS, "sentences"]):
        tally.passed += row["verdict"] == SUPPORTED
        if any(sentence["flagged"] for sentence in row["sentences"] or []):
            tally.used += 1
            yield row
        else:
            tally.left_out[NOT_SCORED if row["verdict"] is None else NO_FLAGGED_SENTENCE] += 1


def _opinion(sentence: Mapping[str, Any]) -> str:
    return (ReviewLabel.UNSUPPORTED if sentence["flagged"] else ReviewLabel.SUPPORTED).value


def _place(sentence: Mapping[str, Any]) -> dict[str, int]:
    return {"start": sentence["start"], "end": sentence["end"]}


def _share(score: float | None) -> float | None:
    """Argilla's scores lie between 0 and 1; ours do under `positive: cdf` and most means, and are left out where they don't."""
    return score if score is not None and 0 <= score <= 1 else None


def _texts(row: Row) -> dict[str, str]:
    context = "\n\n".join(passage for passage in row["context"] or [] if passage)
    return {"question": row["question"] or "", "context": context, "response": row["response"]}


def _origin(row: Row) -> dict[str, Any]:
    names = ("row_id", "partition", "verdict", "run_id")
    return {**{name: row[name] for name in names}, "score": finite(row["score"])}
