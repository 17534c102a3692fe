"""Labels of responses and sentences: the source of labels, and how a column of them is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.display.quoted import summarize_values
from ragassay.jobs.evaluation import errors
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED


class Label(StrEnum):
    """A person's label of a response."""

    CORRECT = "correct"
    PARTIAL = "partial"
    WRONG = "wrong"


LABEL_WORDS = {
    "correct": Label.CORRECT,
    "supported": Label.CORRECT,
    "partial": Label.PARTIAL,
    "wrong": Label.WRONG,
    "hallucinated": Label.WRONG,
    "unsupported": Label.WRONG,
}
TRUE_MEANS = {
    **dict.fromkeys(("hallucinated", "hallucination", "unsupported", "wrong"), HALLUCINATED),
    **dict.fromkeys(("supported", "correct", "grounded", "faithful"), SUPPORTED),
}
SENTENCE_COLUMNS = ("sentence_labels", "spans")
EXPORT_SUFFIX = ".json"
LINES_SUFFIX = ".jsonl"
REVIEW_SUFFIXES = (LINES_SUFFIX, EXPORT_SUFFIX)
"""Suffixes of review files; every other label file is Parquet."""


@dataclass(frozen=True)
class LabelSource:
    """The source of labels.

    Attributes:
        column: Column of the labels: booleans (or 0 and 1), or LABEL_WORDS; null is no label.
        true_means: What true means, supported or hallucinated; None derives it from the column's name.
        ignore: Label values that count as no label.
        sentence_column: Column of sentence labels (structs of start, end, supported) or of unsupported spans (start, end);
            None takes the first of SENTENCE_COLUMNS that exists.
        where: Column -> value, as text, that a row must have; see `jobs.output.scored_dataset.value_to_text`.
        file: Label file; None takes the labels from the logs' own columns. Parquet has row_id and the label column, a row per
            response, or a row per sentence with start and end. With a column `partition` (`dt=2026-11-20`, as in the export of
            flagged rows) ids may repeat between partitions. JSON Lines of the review page end in `.jsonl`; see
            `schemas.review`.
    """

    column: str
    true_means: str | None = None
    ignore: frozenset[str] = frozenset()
    sentence_column: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None


def parse_labels(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    """Parse the labels of a column; null and NaN become None.

    Raises:
        InputError: The column's type or a value is not a label.
    """
    column_type = column.type
    if pa.types.is_dictionary(column_type):
        column = column.cast(column_type.value_type)
        column_type = column.type
    if pa.types.is_floating(column_type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_boolean(column_type) or pa.types.is_integer(column_type) or pa.types.is_floating(column_type):
        return _parse_booleans(column, source)
    if not (
        pa.types.is_string(column_type)
        or pa.types.is_large_string(column_type)
        or pa.types.is_string_view(column_type)
        or pa.types.is_null(column_type)
    ):
        raise InputError(errors.COLUMN_TYPE, column=source.column, type=column_type, forms=_list_words())
    unknown = sorted({str(v) for v in pc.unique(column).to_pylist() if v is not None} - set(LABEL_WORDS) - source.ignore)
    if unknown:
        raise InputError(
            errors.UNKNOWN_VALUES, column=source.column, type=column_type, values=summarize_values(unknown), forms=_list_words()
        )
    return [None if v is None or v in source.ignore else LABEL_WORDS[v] for v in column.to_pylist()]


def is_review_file(uri: str) -> bool:
    """Return whether a file, by its name, is JSON Lines of reviewers or an export of Label Studio."""
    return uri.lower().endswith(REVIEW_SUFFIXES)


def compute_sentence_truth(
    spans: Sequence[tuple[int, int]], labels: Sequence[dict[str, Any]] | None, label: Label | None
) -> list[bool | None]:
    """Return whether each sentence is supported, by labeled sentences or unsupported spans of the same response.

    Args:
        spans: The output's sentences, [start, end) in the response.
        labels: Structs of start, end and supported; or of start and end, which are unsupported.
        label: The response's label. Without any span, the sentences of a response that is not correct are unknown.

    Returns:
        True, False, or None if unknown.
    """
    if labels is None:
        return [None] * len(spans)
    are_spans = not any("supported" in part for part in labels if part)
    if are_spans and not labels and label is not Label.CORRECT:
        return [None] * len(spans)
    truth: list[bool | None] = []
    for start, end in spans:
        valid = (part for part in labels if part and part["start"] is not None and part["end"] is not None)
        overlapping = [part for part in valid if part["start"] < end and start < part["end"]]
        supported = [part.get("supported", False) for part in overlapping]
        if False in supported:
            truth.append(False)
        else:
            truth.append(True if are_spans or True in supported else None)
    return truth


def _parse_booleans(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    meaning = source.true_means or TRUE_MEANS.get(source.column.lower().removeprefix("is_"))
    if meaning is None:
        raise InputError(
            errors.TRUE_MEANS_UNKNOWN, column=source.column, type=column.type, supported=SUPPORTED, hallucinated=HALLUCINATED
        )
    values = column.to_pylist()
    invalid = sorted({str(v) for v in values if v is not None and v not in (0, 1)})
    if invalid:
        raise InputError(errors.NUMBERS_NOT_BOOLEAN, column=source.column, values=", ".join(invalid[:10]))
    return [None if v is None else Label.CORRECT if bool(v) == (meaning == SUPPORTED) else Label.WRONG for v in values]


def _list_words() -> str:
    return ", ".join(LABEL_WORDS)
