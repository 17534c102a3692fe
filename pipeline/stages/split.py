"""Split: each row gets its sentences, or the status that says why it has none."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ragassay.pipeline.contain import contain, fault_of
from ragassay.pipeline.language import by_language, row_languages
from ragassay.pipeline.measured_language import add_languages
from ragassay.pipeline.repeats import repeated
from ragassay.pipeline.sentence_ends import Span
from ragassay.pipeline.split import load_splitter, split
from ragassay.schemas.columns import EVIDENCE, MEMBER, SPAN, USAGE, Status

_Split = tuple[list[dict[str, Any]] | None, str, str | None]
"""Sentences of a row, null where it can't be scored; its status; and why."""


def split_batch(
    table: pa.Table,
    splitter: tuple[str, str],
    question_needed: bool,
    language_column: str | None = None,
    languages: Collection[str] | None = None,
) -> pa.Table:
    """Give each row its sentences and its language, or the status that says why it has none; empty members and usage are
    added, and further columns of `raw/`, which later stages fill, as nulls.

    Args:
        table: Rows of the schema `logs`.
        splitter: Name and language of the splitter.
        question_needed: Whether a row without a question can't be scored.
        language_column: Column with each row's language, in the place of the splitter's; None where there is none.
        languages: ISO 639-1 codes of the languages in which rows are scored; None scores rows in every language.
    """
    rows = table.select(["question", "context", "response", "status", "error"]).to_pylist()
    found: list[_Split] = [(None, Status.ERROR.value, None)] * len(rows)
    for language, places in by_language(row_languages(table, splitter[1], language_column)).items():
        mine, nlp = [rows[place] for place in places], _nlp(splitter[0], language)
        for place, one in zip(places, chain.from_iterable(_contained(mine, nlp, question_needed)), strict=True):
            found[place] = one
    sentences, statuses, errors = zip(*found, strict=True) if rows else ((), (), ())
    table = table.drop_columns(["status", "error"])
    for name, values, kind in (
        ("sentences", sentences, pa.list_(SPAN)),
        ("members", [None if spans is None else [] for spans in sentences], pa.list_(MEMBER)),
        ("evidence", [None] * len(rows), pa.list_(EVIDENCE)),
        ("usage", [None if spans is None else [] for spans in sentences], pa.list_(USAGE)),
        ("context_windows", [None] * len(rows), pa.int32()),
        ("passage_order", [None] * len(rows), pa.list_(pa.int32())),
        ("status", statuses, pa.string()),
        ("error", errors, pa.string()),
    ):
        table = table.append_column(name, pa.array(values, type=kind))
    return add_languages(table, rows, language_column, languages)


def _contained(rows: Sequence[Mapping[str, Any]], nlp: Any, question_needed: bool) -> list[list[_Split]]:
    return contain(
        len(rows),
        lambda some: _split_rows(rows[some], nlp, question_needed),
        lambda _, error: [(None, Status.ERROR.value, f"split: {fault_of(error)}")],
    )


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


_loaded: dict[tuple[str, str], Any] = {}


def _nlp(name: str, language: str) -> Any:
    """The splitter of this worker process, loaded once."""
    if (name, language) not in _loaded:
        _loaded[name, language] = load_splitter(name, language)
    return _loaded[name, language]
