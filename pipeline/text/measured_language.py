"""Set the language of rows, and the status of rows in a language in which the members are not measured."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools
from ragassay.pipeline.contain import contain
from ragassay.pipeline.text.language_codes import read_row_languages
from ragassay.pipeline.text.language_detection import detect_row_language, normalize_code
from ragassay.pipeline.text.split import MULTI_LANGUAGE
from ragassay.schemas.columns import MEMBER, Status


def add_languages(
    table: pa.Table, texts: Sequence[Mapping[str, Any]], column: str | None, measured: Collection[str] | None
) -> pa.Table:
    """Add the language of each row with the status `ok`, and set the status `language_not_measured` if it is not measured.

    Args:
        table: Rows with their sentences, from `stages.split`.
        texts: Question, context and response of each row.
        column: Column with each row's language, used if it names a language; None without one.
        measured: ISO 639-1 codes of the measured languages; None keeps the status of every row.
    """
    logged = read_row_languages(table, MULTI_LANGUAGE, column)
    indices = [index for index, status in enumerate(table["status"].to_pylist()) if status == Status.OK]

    def find_languages(some: slice) -> list[str | None]:
        return [_find_language(texts[index], logged[index], measured or ()) for index in indices[some]]

    def return_unknown(_index: int, _error: Exception) -> list[str | None]:
        return [None]  # a fault is not evidence of another language: judge the row

    results = contain(len(indices), find_languages, return_unknown)
    languages: list[str | None] = [None] * len(texts)
    for index, language in zip(indices, chain.from_iterable(results), strict=True):
        languages[index] = language
    language_array = pa.array(languages, pa.string())
    is_other = find_other_languages(language_array, measured)
    table = table.append_column("language", language_array)
    return _mark_unmeasured(table, set(is_other.nonzero()[0].tolist()), languages, measured or ()) if is_other.any() else table


def find_other_languages(languages: pa.Array, measured: Collection[str] | None) -> Bools:
    """Return whether each row's language is known and not measured.

    Args:
        languages: Language of each row; null if unknown.
        measured: ISO 639-1 codes of the measured languages; None if every language is measured.
    """
    if measured is None:
        return np.zeros(len(languages), dtype=bool)
    is_measured = pc.is_in(languages, value_set=pa.array(list(measured), pa.string()))
    is_other = pc.and_(pc.is_valid(languages), pc.invert(is_measured))
    return np.asarray(is_other.to_numpy(zero_copy_only=False), dtype=bool)


def other_language_error(language: str | None, measured: Collection[str]) -> str:
    """Return the error of a row in a language that is not measured."""
    return (
        f"the row's language is {language}, and the members are measured only in {', '.join(sorted(measured))}: "
        "set `splitting.languages: any` to judge it anyway"
    )


def _find_language(row: Mapping[str, Any], logged: str, measured: Collection[str]) -> str | None:
    if logged != MULTI_LANGUAGE:
        return normalize_code(logged)
    return detect_row_language(row["question"], row["context"], row["response"], measured)


def _mark_unmeasured(
    table: pa.Table, marked: Collection[int], languages: Sequence[str | None], measured: Collection[str]
) -> pa.Table:
    """Mark rows as not scored; their sentences stay."""
    changed: dict[str, tuple[Any, pa.DataType]] = {
        "members": (lambda index: None, pa.list_(MEMBER)),
        "status": (lambda index: Status.LANGUAGE_NOT_MEASURED.value, pa.string()),
        "error": (lambda index: other_language_error(languages[index], measured), pa.string()),
    }
    for name, (make_value, data_type) in changed.items():
        values = [make_value(index) if index in marked else value for index, value in enumerate(table[name].to_pylist())]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, data_type))
    return table
