"""Give rows their language, and those in a language without a measured figure the status that says so."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools
from ragassay.pipeline.contain import contain
from ragassay.pipeline.text.language import row_languages
from ragassay.pipeline.text.split import MANY_LANGUAGES
from ragassay.pipeline.text.written_language import code_of, language_of_row
from ragassay.schemas.columns import MEMBER, Status


def add_languages(
    table: pa.Table, texts: Sequence[Mapping[str, Any]], column: str | None, measured: Collection[str] | None
) -> pa.Table:
    """Give each row with the status `ok` its language, and the status `language_not_measured` where that is not measured.

    Args:
        table: Rows with their sentences, as `stages.split` makes them.
        texts: Question, context and response of each row.
        column: Column with each row's language, which counts where it names a language; None where there is none.
        measured: ISO 639-1 codes of the languages that are measured; None leaves the status of every row.
    """
    logged = row_languages(table, MANY_LANGUAGES, column)
    places = [place for place, status in enumerate(table["status"].to_pylist()) if status == Status.OK]

    def find(some: slice) -> list[str | None]:
        return [_language(texts[place], logged[place], measured or ()) for place in places[some]]

    def give_up(_place: int, _error: Exception) -> list[str | None]:
        return [None]  # a fault is no evidence: the row is judged

    found = contain(len(places), find, give_up)
    languages: list[str | None] = [None] * len(texts)
    for place, language in zip(places, chain.from_iterable(found), strict=True):
        languages[place] = language
    column_of_languages = pa.array(languages, pa.string())
    others = in_other_languages(column_of_languages, measured)
    table = table.append_column("language", column_of_languages)
    return _refuse(table, set(others.nonzero()[0].tolist()), languages, measured or ()) if others.any() else table


def in_other_languages(languages: pa.Array, measured: Collection[str] | None) -> Bools:
    """Return whether each row's language is known, and is not measured.

    Args:
        languages: Language of each row; null where it is not known.
        measured: ISO 639-1 codes of the languages that are measured; None measures every language.
    """
    if measured is None:
        return np.zeros(len(languages), dtype=bool)
    found = pc.is_in(languages, value_set=pa.array(list(measured), pa.string()))
    others = pc.and_(pc.is_valid(languages), pc.invert(found))
    return np.asarray(others.to_numpy(zero_copy_only=False), dtype=bool)


def not_measured(language: str | None, measured: Collection[str]) -> str:
    """The error of a row in a language that is not measured."""
    return (
        f"the row's language is {language}, and the members are measured in {', '.join(sorted(measured))}: "
        "`splitting.languages: any` judges it all the same"
    )


def _language(row: Mapping[str, Any], logged: str, measured: Collection[str]) -> str | None:
    if logged != MANY_LANGUAGES:
        return code_of(logged)
    return language_of_row(row["question"], row["context"], row["response"], measured)


def _refuse(table: pa.Table, others: Collection[int], languages: Sequence[str | None], measured: Collection[str]) -> pa.Table:
    """The same table, in which some rows are not scored; their sentences stay."""
    changed: dict[str, tuple[Any, pa.DataType]] = {
        "members": (lambda place: None, pa.list_(MEMBER)),
        "status": (lambda place: Status.LANGUAGE_NOT_MEASURED.value, pa.string()),
        "error": (lambda place: not_measured(languages[place], measured), pa.string()),
    }
    for name, (new, kind) in changed.items():
        values = [new(place) if place in others else value for place, value in enumerate(table[name].to_pylist())]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, kind))
    return table
