"""What the page shows of a sample: visible texts, responses cut at their sentences, offsets as `scored/` has them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.report.review.sample import Drawn
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.calibration.baselines import nearest, words
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED

COLUMNS = (
    "row_id", "question", "context", "response", "score", "threshold", "verdict", "decided_by", "sentences", "evidence",
)  # fmt: skip
Shown = dict[str, Any]


def shown_rows(output: Folder, drawn: Sequence[Drawn]) -> list[Shown]:
    """What the page shows of each row of a sample, in its order; see `shown`."""
    positions = [row.position for row in drawn]
    found = {number: shown(row, drawn[number]) for number, row in open_scored(output).rows_at(positions, COLUMNS)}
    return [found[number] for number in range(len(drawn))]


def shown(row: Mapping[str, Any], drawn: Drawn) -> Shown:
    """A row as the page shows it, fit for JSON.

    Args:
        row: COLUMNS of a scored row.
        drawn: How it was drawn.

    Returns:
        What its labels carry (row_id, partition, stratum, inclusion_probability), null where that is left out; and for the
        eye name, place, question, context (passages), verdict, and parts: the response from its start to its end, text
        between sentences (plain strings), and sentences (text; start and end, their characters [start, end) in the response;
        score; near: number of the nearest passage and [from, to) of its best piece in UTF-16 units of the text shown, null
        without a passage).
    """
    passages = [passage or "" for passage in row["context"]]
    vocabularies = [set(words(passage)) for passage in passages]
    evidence = row.get("evidence") or [None] * len(row["sentences"])
    parts: list[str | Shown] = []
    end = 0
    for sentence, at in zip(row["sentences"], evidence, strict=True):
        parts += [make_visible(row["response"][end : sentence["start"]])] if sentence["start"] > end else []
        parts.append(
            {
                "text": make_visible(sentence["text"]),
                "start": sentence["start"],
                "end": sentence["end"],
                "score": _figure(sentence["score"]) + (", flagged" if sentence["flagged"] else ""),
                "near": _near(sentence["text"], passages, vocabularies, at),
            }
        )
        end = sentence["end"]
    parts += [make_visible(row["response"][end:])] if end < len(row["response"]) else []
    partition = drawn.position.file.partition_name
    return {
        "row_id": row["row_id"],
        "partition": partition or None,
        "stratum": drawn.stratum or None,
        "inclusion_probability": drawn.probability,
        "name": make_visible(row["row_id"]),
        "place": make_visible(partition),
        "question": make_visible(row["question"] or ""),
        "context": [make_visible(passage) for passage in passages],
        "verdict": _verdict(row),
        "parts": parts,
    }


def _near(
    text: str, passages: Sequence[str], vocabularies: Sequence[set[str]], evidence: Mapping[str, Any] | None
) -> tuple[int, int, int] | None:
    """The passage that a detector found best, with its best piece; without one that which has most of the words, whole."""
    best = evidence["passage"] if evidence else None
    if evidence and best is not None and evidence["start"] is not None:
        passage = passages[best]
        return best, _units(passage[: evidence["start"]]), _units(passage[: evidence["end"]])
    best = nearest(text, vocabularies) if best is None else best
    return None if best is None else (best, 0, 0)


def _units(text: str) -> int:
    """UTF-16 units of a text as it is shown, in which JavaScript counts."""
    return len(make_visible(text).encode("utf-16-le", "surrogatepass")) // 2


def _verdict(row: Mapping[str, Any]) -> str:
    verdict = "flagged as hallucinated" if row["verdict"] == HALLUCINATED else row["verdict"]
    judge = row.get("decided_by") or ENSEMBLE
    by = "" if judge == ENSEMBLE else f" by {make_visible(judge)}"
    return f"{verdict}{by}, score {_figure(row['score'])} (threshold {_figure(row['threshold'])})"


def _figure(number: float | None) -> str:
    return "none" if number is None or math.isnan(number) else f"{number:.3g}"
