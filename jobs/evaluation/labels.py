"""Labels of responses and sentences: a column of the logs, or a file of reviewers: Parquet, JSON Lines, Label Studio."""

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
    """What a person says of a response."""

    CORRECT = "correct"
    PARTIAL = "partial"
    WRONG = "wrong"


WORDS = {
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
SUFFIX = ".jsonl"
SUFFIXES = (SUFFIX, EXPORT_SUFFIX)
"""By its name a file of labels is one of these; else it is Parquet."""


@dataclass(frozen=True)
class LabelSource:
    """Where labels come from.

    Attributes:
        column: Column of the labels: booleans (or 0 and 1), or the words of WORDS; null is no label.
        true_means: What true says of a response, supported or hallucinated; None takes it from the column's name.
        ignore: Label values that count as no label.
        sentences: Column of sentence labels (structs of start, end, supported) or of unsupported spans (start, end); None
            takes one of SENTENCE_COLUMNS if it is there.
        where: Column -> the value, as text, that a row must have to be looked at; see `jobs.evaluation.labelled.as_text`.
        file: Parquet file with row_id and the label column, a row a response, or, with start and end, a row a sentence;
            with a column `partition` (`dt=2026-11-20`, as in the export of flagged rows) ids may repeat between partitions.
            Or JSON Lines of the review page, whose name ends in `.jsonl`; see `schemas.review`. None takes the labels from
            the logs' own columns.
    """

    column: str
    true_means: str | None = None
    ignore: frozenset[str] = frozenset()
    sentences: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None


def to_labels(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    """Labels of a column, null and NaN as None.

    Raises:
        InputError: The type, or a value, is no label.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _from_truth(column, source)
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    ):
        raise InputError(errors.COLUMN_TYPE, column=source.column, type=kind, forms=_forms())
    unknown = sorted({str(v) for v in pc.unique(column).to_pylist() if v is not None} - set(WORDS) - source.ignore)
    if unknown:
        raise InputError(
            errors.UNKNOWN_VALUES, column=source.column, type=kind, values=summarize_values(unknown), forms=_forms()
        )
    return [None if v is None or v in source.ignore else WORDS[v] for v in column.to_pylist()]


def is_lines(uri: str) -> bool:
    """Whether a file of labels says by itself what they mean, by its name: JSON Lines, or an export of Label Studio."""
    return uri.lower().endswith(SUFFIXES)


def sentence_truth(
    spans: Sequence[tuple[int, int]], labels: Sequence[dict[str, Any]] | None, label: Label | None
) -> list[bool | None]:
    """Whether each sentence is supported, by labelled sentences or unsupported spans of the same response.

    Args:
        spans: Our sentences, [start, end) in the response.
        labels: Structs of start, end and supported; or of start and end, which are unsupported.
        label: The response's label: without any span, the sentences of a response that is not correct are unknown.

    Returns:
        True, False, or None where nothing is said of it.
    """
    if labels is None:
        return [None] * len(spans)
    are_spans = not any("supported" in part for part in labels if part)
    if are_spans and not labels and label is not Label.CORRECT:
        return [None] * len(spans)
    truth: list[bool | None] = []
    for start, end in spans:
        known = (part for part in labels if part and part["start"] is not None and part["end"] is not None)
        over = [part for part in known if part["start"] < end and start < part["end"]]
        said = [part.get("supported", False) for part in over]
        if False in said:
            truth.append(False)
        else:
            truth.append(True if are_spans or True in said else None)
    return truth


def _from_truth(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    meaning = source.true_means or TRUE_MEANS.get(source.column.lower().removeprefix("is_"))
    if meaning is None:
        raise InputError(
            errors.TRUE_UNCLEAR, column=source.column, type=column.type, supported=SUPPORTED, hallucinated=HALLUCINATED
        )
    values = column.to_pylist()
    odd = sorted({str(v) for v in values if v is not None and v not in (0, 1)})
    if odd:
        raise InputError(errors.ODD_NUMBERS, column=source.column, values=", ".join(odd[:10]))
    return [None if v is None else Label.CORRECT if bool(v) == (meaning == SUPPORTED) else Label.WRONG for v in values]


def _forms() -> str:
    return ", ".join(WORDS)
