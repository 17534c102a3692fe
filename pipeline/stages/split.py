"""The stage `split`: each row gets its sentences, or a status with the reason why it has none."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from ragassay.pipeline.attach import set_columns
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.language_codes import group_by_language, read_row_languages
from ragassay.pipeline.text.measured_language import add_languages
from ragassay.pipeline.text.repeats import find_repeats
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.pipeline.text.split import load_splitter, split_sentences
from ragassay.schemas.columns import Status, raw_columns

TEXT_COLUMNS = ("question", "context", "response", "status", "error")

_Split = tuple[list[dict[str, Any]] | None, str, str | None]
"""Sentences of a row, null if it can't be scored; its status; and its error."""


OUTPUT_COLUMNS = raw_columns("sentences", "members", "evidence", "usage", "context_windows", "passage_order", "status", "error")


@dataclass
class SplitStage(Stage):
    """Adds sentences and language to each row, or the status why it can't be scored; also adds empty members and usage, and the
    columns of `raw/` that later stages fill, as nulls.

    Attributes:
        splitter: Name and language of the splitter.
        needs_question: Whether a row without a question can't be scored.
        language_column: Column with each row's language, which overrides the splitter's; None without one.
        languages: ISO 639-1 codes of the languages in which rows are scored; None for every language.
    """

    splitter: tuple[str, str]
    needs_question: bool
    language_column: str | None = None
    languages: Collection[str] | None = None

    name = "split"
    columns_out = pa.schema([*OUTPUT_COLUMNS, *raw_columns("language")])
    fault_prefix = "split"

    def __post_init__(self) -> None:
        """Set the columns that depend on the settings."""
        self.columns_in = (*TEXT_COLUMNS, *filter(None, [self.language_column]))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Split rows with the columns of `logs`."""
        rows = table.select(TEXT_COLUMNS).to_pylist()
        results: list[_Split] = [(None, Status.ERROR.value, None)] * len(rows)
        for language, indices in group_by_language(read_row_languages(table, self.splitter[1], self.language_column)).items():
            language_results = _split_rows(
                [rows[index] for index in indices], _load_splitter(self.splitter[0], language), self.needs_question
            )
            for index, split_row in zip(indices, language_results, strict=True):
                results[index] = split_row
        sentences, statuses, errors = zip(*results, strict=True) if rows else ((), (), ())
        values: dict[str, Sequence[Any]] = {
            **dict.fromkeys(OUTPUT_COLUMNS.names, [None] * len(rows)),
            "sentences": sentences,
            "members": [None if spans is None else [] for spans in sentences],
            "usage": [None if spans is None else [] for spans in sentences],
            "status": statuses,
            "error": errors,
        }
        table = set_columns(table.drop_columns(["status", "error"]), OUTPUT_COLUMNS, values)
        return add_languages(table, rows, self.language_column, self.languages)


def _split_rows(rows: Sequence[Mapping[str, Any]], nlp: Any, question_needed: bool) -> list[_Split]:
    faults = [
        (row["status"], row["error"]) if row["status"] != Status.OK else find_row_fault(row, question_needed) for row in rows
    ]
    texts = ["" if fault else row["response"] for row, fault in zip(rows, faults, strict=True)]
    results: list[_Split] = []
    for row, spans, fault in zip(rows, split_sentences(nlp, texts), faults, strict=True):
        if fault:
            results.append((None, *fault))
        elif not spans:
            results.append((None, Status.EMPTY_RESPONSE.value, "the response has no words"))
        else:
            results.append((_make_sentences(row, spans), Status.OK.value, None))
    return results


def _make_sentences(row: Mapping[str, Any], spans: Sequence[Span]) -> list[dict[str, Any]]:
    texts = [row["response"][start:end] for start, end in spans]
    repeats = find_repeats([passage for passage in row["context"] if passage], texts)
    return [
        {"text": text, "start": start, "end": end, "repeats": is_repeat}
        for text, (start, end), is_repeat in zip(texts, spans, repeats, strict=True)
    ]


def find_row_fault(row: Mapping[str, Any], question_needed: bool) -> tuple[str, str] | None:
    """Return why a row can't be scored, as (status, error); None if it can."""
    if question_needed and not (row["question"] or "").strip():
        return Status.NO_QUESTION.value, "the question is null or empty"
    if not any((passage or "").strip() for passage in row["context"] or []):
        return Status.NO_CONTEXT.value, "the context is null or empty"
    if row["response"] is None:
        return Status.NO_RESPONSE.value, "the response is null"
    return None


@cache
def _load_splitter(name: str, language: str) -> Any:
    """Return this process's splitter; load it once."""
    return load_splitter(name, language)
