"""Prepare a sample for the review page: visible texts, responses cut at their sentences, offsets as in `scored/`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ragassay.jobs.display.scores import format_both
from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.report.review.sample import SampledRow
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.text.words import extract_words, find_nearest_passage
from ragassay.schemas.columns import ENSEMBLE, HALLUCINATED

READ_COLUMNS = (
    "row_id", "question", "context", "response", "score", "threshold", "verdict", "decided_by", "sentences", "evidence",
)  # fmt: skip
PageRow = dict[str, Any]


def read_page_rows(output: Folder, sampled: Sequence[SampledRow]) -> list[PageRow]:
    """Read the sampled rows in their order, as the page shows them; see `make_page_row`."""
    positions = [row.position for row in sampled]
    rows_by_number = {
        number: make_page_row(row, sampled[number]) for number, row in open_scored(output).read_rows_at(positions, READ_COLUMNS)
    }
    return [rows_by_number[number] for number in range(len(sampled))]


def make_page_row(row: Mapping[str, Any], sampled: SampledRow) -> PageRow:
    """Make a row of the page, as JSON values.

    Args:
        row: READ_COLUMNS of a scored row.
        sampled: How the row was drawn.

    Returns:
        Fields of its labels: row_id, partition, stratum, inclusion_probability; null if absent. Fields to show: name,
        partition_name, question, context (passages), verdict and parts. Parts are the whole response in order: texts between
        sentences (strings), and sentences with text, start and end (characters [start, end) of the response), score, and near
        (number of the nearest passage and [from, to) of its best piece in UTF-16 units of the shown text; null without a
        passage).
    """
    passages = [passage or "" for passage in row["context"]]
    vocabularies = [set(extract_words(passage)) for passage in passages]
    evidence = row.get("evidence") or [None] * len(row["sentences"])
    parts: list[str | PageRow] = []
    end = 0
    for sentence, sentence_evidence in zip(row["sentences"], evidence, strict=True):
        parts += [make_visible(row["response"][end : sentence["start"]])] if sentence["start"] > end else []
        parts.append(
            {
                "text": make_visible(sentence["text"]),
                "start": sentence["start"],
                "end": sentence["end"],
                "score": _describe_score(sentence),
                "near": _find_nearest(sentence["text"], passages, vocabularies, sentence_evidence),
            }
        )
        end = sentence["end"]
    parts += [make_visible(row["response"][end:])] if end < len(row["response"]) else []
    partition = sampled.position.file.partition_name
    return {
        "row_id": row["row_id"],
        "partition": partition or None,
        "stratum": sampled.stratum or None,
        "inclusion_probability": sampled.probability,
        "name": make_visible(row["row_id"]),
        "partition_name": make_visible(partition),
        "question": make_visible(row["question"] or ""),
        "context": [make_visible(passage) for passage in passages],
        "verdict": _describe_verdict(row),
        "parts": parts,
    }


def _find_nearest(
    text: str, passages: Sequence[str], vocabularies: Sequence[set[str]], evidence: Mapping[str, Any] | None
) -> tuple[int, int, int] | None:
    """Find the nearest passage and its best piece, by a detector; else the whole passage that contains most of the words."""
    nearest_passage = evidence["passage"] if evidence else None
    if evidence and nearest_passage is not None and evidence["start"] is not None:
        passage = passages[nearest_passage]
        return nearest_passage, _count_utf16_units(passage[: evidence["start"]]), _count_utf16_units(passage[: evidence["end"]])
    nearest_passage = find_nearest_passage(text, vocabularies) if nearest_passage is None else nearest_passage
    return None if nearest_passage is None else (nearest_passage, 0, 0)


def _count_utf16_units(text: str) -> int:
    """Count the UTF-16 units of a text as it is shown; JavaScript counts in them."""
    return len(make_visible(text).encode("utf-16-le", "surrogatepass")) // 2


def _describe_score(sentence: Mapping[str, Any]) -> str:
    probability = sentence["probability"]
    number = f"score {_format_number(sentence['score'])}" if probability is None else f"P(supported) {probability:.2f}"
    return ", ".join(filter(None, [sentence["state"], number]))


def _describe_verdict(row: Mapping[str, Any]) -> str:
    verdict = "flagged as hallucinated" if row["verdict"] == HALLUCINATED else row["verdict"]
    judge = row.get("decided_by") or ENSEMBLE
    by = "" if judge == ENSEMBLE else f" by {make_visible(judge)}"
    if row["score"] is None or row["threshold"] is None:
        return f"{verdict}{by}, score {_format_number(row['score'])}"
    score, threshold = format_both(row["score"], row["threshold"])
    return f"{verdict}{by}, score {score} (threshold {threshold})"


def _format_number(number: float | None) -> str:
    return "none" if number is None or math.isnan(number) else f"{number:.3g}"
