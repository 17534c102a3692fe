"""The stage `split`: each row gets its sentences, or the status that says why it has none."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from ragassay.pipeline.attach import with_columns
from ragassay.pipeline.stages.measured_language import add_languages
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.language import by_language, row_languages
from ragassay.pipeline.text.repeats import repeated
from ragassay.pipeline.text.sentence_ends import Span
from ragassay.pipeline.text.split import load_splitter, split
from ragassay.schemas.columns import Status, raw_columns

TEXTS = ("question", "context", "response", "status", "error")

_Split = tuple[list[dict[str, Any]] | None, str, str | None]
"""Sentences of a row, null where it can't be scored; its status; and why."""


COLUMNS = raw_columns("sentences", "members", "evidence", "usage", "context_windows", "passage_order", "status", "error")


@dataclass
class Split(Stage):
    """Gives each row its sentences and its language, or the status that says why it has none; empty members and usage are
    added, and further columns of `raw/`, which later stages fill, as nulls.

    Attributes:
        splitter: Name and language of the splitter.
        question_needed: Whether a row without a question can't be scored.
        language_column: Column with each row's language, in the place of the splitter's; None where there is none.
        languages: ISO 639-1 codes of the languages in which rows are scored; None scores rows in every language.
    """

    splitter: tuple[str, str]
    question_needed: bool
    language_column: str | None = None
    languages: Collection[str] | None = None

    name = "split"
    columns_out = pa.schema([*COLUMNS, *raw_columns("language")])
    fault_prefix = "split"

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.columns_in = (*TEXTS, *filter(None, [self.language_column]))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Split rows of the schema `logs`."""
        rows = table.select(TEXTS).to_pylist()
        found: list[_Split] = [(None, Status.ERROR.value, None)] * len(rows)
        for language, places in by_language(row_languages(table, self.splitter[1], self.language_column)).items():
            of_language = _split_rows([rows[place] for place in places], _nlp(self.splitter[0], language), self.question_needed)
            for place, split_row in zip(places, of_language, strict=True):
                found[place] = split_row
        sentences, statuses, errors = zip(*found, strict=True) if rows else ((), (), ())
        values: dict[str, Sequence[Any]] = {
            **dict.fromkeys(COLUMNS.names, [None] * len(rows)),
            "sentences": sentences,
            "members": [None if spans is None else [] for spans in sentences],
            "usage": [None if spans is None else [] for spans in sentences],
            "status": statuses,
            "error": errors,
        }
        table = with_columns(table.drop_columns(["status", "error"]), COLUMNS, values)
        return add_languages(table, rows, self.language_column, self.languages)


def _split_rows(rows: Sequence[Mapping[str, Any]], nlp: Any, question_needed: bool) -> list[_Split]:
    faults = [(row["status"], row["error"]) if row["status"] != Status.OK else row_fault(row, question_needed) for row in rows]
    texts = ["" if fault else row["response"] for row, fault in zip(rows, faults, strict=True)]
    found: list[_Split] = []
    for row, spans, fault in zip(rows, split(nlp, texts), faults, strict=True):
        if fault:
            found.append((None, *fault))
        elif not spans:
            found.append((None, Status.EMPTY_RESPONSE.value, "the response has no word"))
        else:
            found.append((_sentences(row, spans), Status.OK.value, None))
    return found


def _sentences(row: Mapping[str, Any], spans: Sequence[Span]) -> list[dict[str, Any]]:
    texts = [row["response"][start:end] for start, end in spans]
    repeats = repeated([passage for passage in row["context"] if passage], texts)
    return [
        {"text": text, "start": start, "end": end, "repeats": again}
        for text, (start, end), again in zip(texts, spans, repeats, strict=True)
    ]


def row_fault(row: Mapping[str, Any], question_needed: bool) -> tuple[str, str] | None:
    """Why a row can't be scored, as (status, error); None where it can."""
    if question_needed and not (row["question"] or "").strip():
        return Status.NO_QUESTION.value, "the question is null or empty"
    if not any((passage or "").strip() for passage in row["context"] or []):
        return Status.NO_CONTEXT.value, "the context is null or empty"
    if row["response"] is None:
        return Status.NO_RESPONSE.value, "the response is null"
    return None


@cache
def _nlp(name: str, language: str) -> Any:
    """The splitter of this process, loaded once."""
    return load_splitter(name, language)
