"""Read the texts, contexts and ids that Python code passes, of any shape, alone or mixed in a column."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from ragassay.jobs.api import errors
from ragassay.jobs.config.input import Columns
from ragassay.jobs.input.documents import parse_document
from ragassay.pipeline.errors import InputError

Converter = Callable[[Iterable[Any], str, Callable[[int], str]], list[str | None]]
"""Makes strings of values; see `contexts_to_strings`."""

CONTEXT = "a string, a list of strings or of objects with a text (the passages), or null"


def texts_to_strings(values: Iterable[Any], field: str, name_row: Callable[[int], str]) -> list[str | None]:
    """Return texts, and check their type; see `contexts_to_strings`."""
    return [_check(value, _is_text(value), "a string or null", field, name_row(i)) for i, value in enumerate(values, 1)]


def ids_to_strings(values: Iterable[Any], field: str, name_row: Callable[[int], str]) -> list[str | None]:
    """Return ids as text; see `contexts_to_strings`."""
    checked = [_check(value, _is_id(value), "a string or an integer", field, name_row(i)) for i, value in enumerate(values, 1)]
    return [None if value is None else str(value) for value in checked]


def contexts_to_strings(values: Iterable[Any], field: str, name_row: Callable[[int], str]) -> list[str | None]:
    """Return contexts as the strings that a run reads: a string as it is, passages as a JSON list.

    Args:
        values: The contexts: a string, a list of strings or objects with a text (dicts, or documents of a library), one such
            object, or None.
        field: Name of their field or column.
        name_row: Names a row, by its number from 1, for messages.

    Raises:
        InputError: A value is not a context; the message names the row.
    """
    plain = map(_to_plain, values)
    return [_to_string(_check(value, _is_context(value), CONTEXT, field, name_row(i))) for i, value in enumerate(plain, 1)]


def messages_to_strings(values: Iterable[Any], field: str, name_row: Callable[[int], str]) -> list[str | None]:
    """Return conversations as the strings that a run reads; invalid ones get a status there. See `contexts_to_strings`."""
    return list(map(_to_string, map(_to_plain, values)))


def get_converters(columns: Columns) -> dict[str, Converter]:
    """Map each column that rows are made of to the function that makes strings of its values."""
    if columns.messages is not None:
        return {columns.messages: messages_to_strings}
    return {
        columns.question: texts_to_strings,
        columns.context: contexts_to_strings,
        columns.response: texts_to_strings,
    }


def _to_plain(value: Any) -> Any:
    """Return arrays as lists, and documents of LangChain, LlamaIndex and Haystack as dicts."""
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _to_plain(value.tolist())
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _to_string(context: Any) -> str | None:
    if context is None or isinstance(context, str):
        return context
    return json.dumps([context] if isinstance(context, Mapping) else context, default=_to_json)


def _to_json(value: Any) -> Any:
    plain = _to_plain(value)
    return str(value) if plain is value else plain


def _check(value: Any, is_valid: bool, expected: str, field: str, row: str) -> Any:
    if not is_valid:
        raise InputError(errors.FIELD_TYPE, answer=row, field=field, expected=expected, actual=_describe_type(value))
    return value


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_context(value: Any) -> bool:
    return _is_text(value) or all(map(_is_passage, value if isinstance(value, list) else [value]))


def _is_passage(value: Any) -> bool:
    return value is None or parse_document(value) is not None


def _is_id(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _describe_type(value: Any) -> str:
    if isinstance(value, list):
        invalid = next((item for item in value if not _is_passage(item)), None)
        return "a list" if invalid is None else f"a list that contains {_describe_type(invalid)}"
    names = {bool: "a boolean", int: "a number", float: "a number", dict: "an object without a text"}
    return names.get(type(value), f"a {type(value).__name__}")
