"""Give rows their language, and those in a language without a measured figure the status that says so."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from ragassay.pipeline.contain import contain
from ragassay.pipeline.language import row_languages
from ragassay.pipeline.split import MANY_LANGUAGES
from ragassay.pipeline.written_language import code_of, language_of_row
from ragassay.schemas.columns import MEMBER, Status


def add_languages(table: pa.Table, column: str | None, measured: Collection[str] | None) -> pa.Table:
    """Give each row with the status `ok` its language, and the status `language_not_measured` where that is not measured.

    Args:
        table: Rows with their sentences, as `stages.split` makes them.
        column: Column with each row's language, which counts where it names a language; None where there is none.
        measured: ISO 639-1 codes of the languages that are measured; None leaves the status of every row.
    """
    rows = table.select(["question", "context", "response", "status"]).to_pylist()
    logged = row_languages(table, MANY_LANGUAGES, column)
    places = [place for place, row in enumerate(rows) if row["status"] == Status.OK]

    def find(some: slice) -> list[str | None]:
        return [_language(rows[place], logged[place], measured or ()) for place in places[some]]

    def give_up(_place: int, _error: Exception) -> list[str | None]:
        return [None]  # a fault is no evidence: the row is judged

    found = contain(len(places), find, give_up)
    languages: list[str | None] = [None] * len(rows)
    for place, language in zip(places, chain.from_iterable(found), strict=True):
        languages[place] = language
    table = table.append_column("language", pa.array(languages, pa.string()))
    others = {place for place, language in enumerate(languages) if is_other(language, measured)}
    return _refuse(table, others, languages, measured or ()) if others else table


def is_other(language: str | None, measured: Collection[str] | None) -> bool:
    """Whether a row's language is known, and is not measured."""
    return measured is not None and language is not None and language not in measured


def not_measured(language: str | None, measured: Collection[str]) -> str:
    """The error of a row in a language that is not measured."""
    return (
        f"the row's language is {language}, and the members are measured in {', '.join(sorted(measured))}: "
        "with `languages: any` it is judged all the same"
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
